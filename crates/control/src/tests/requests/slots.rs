//! The timetable: rights, claims, tokens, what is kept, and what is told.

use prorata_bulletin::Reader;
use prorata_core::slots::admission::CLASSES;
use prorata_core::slots::geometry::Cell;
use prorata_core::slots::level::Level;
use prorata_protocol::slots::{
    AccountName, Amount, Class, Ended, Fraction, Members, Policy, Runs, SlotRequest, SlotsAnswer,
    SlotsNews, SlotsReport, SlotsRequest, TokensReport,
};
use prorata_protocol::{Request, Response};

use super::*;
use prorata_core::ledger::Operation;

use crate::journal::faults;
use crate::slots::{Audience, News};
use crate::state::Change;

const SLOT_NS: u64 = 10_000_000;

impl World {
    fn slots(&mut self, uid: u32, request: SlotsRequest) -> SlotsAnswer {
        match self.ask(uid, Request::Slots(request)) {
            Response::Slots(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn slots_refused(&mut self, uid: u32, request: SlotsRequest) -> String {
        self.refused(uid, Request::Slots(request))
    }

    fn open(&mut self) -> SlotsReport {
        match self.slots(0, open(12)) {
            SlotsAnswer::Open(report) => report,
            other => panic!("{other:?}"),
        }
    }

    fn claim(&mut self, uid: u32, requests: Vec<SlotRequest>) -> (Vec<Cell>, Vec<String>) {
        match self.slots(uid, claim(requests)) {
            SlotsAnswer::Claimed {
                claimed, refused, ..
            } => (claimed, refused.into_iter().map(|(_, why)| why).collect()),
            other => panic!("{other:?}"),
        }
    }

    fn tokens(&mut self, uid: u32, request: SlotsRequest) -> TokensReport {
        match self.slots(uid, request) {
            SlotsAnswer::Tokens(report) => report,
            other => panic!("{other:?}"),
        }
    }

    fn give(&mut self, user: &str, level: Level, count: u32) {
        let request = SlotsRequest::SetTokens {
            account: AccountName::User(user.into()),
            level,
            amount: Amount::Absolute(count),
            weight: Some(1),
        };
        self.tokens(0, request);
    }

    fn pass(&mut self, slots: u64) {
        let now_ns = &self.now_ns;
        now_ns.set(now_ns.get() + slots * SLOT_NS);
        self.control.advance_slots();
    }

    fn told(&mut self) -> Vec<News> {
        self.control.slots.take_news().into()
    }

    /// The daemon ends by a crash, and the next one has the same processes.
    fn crash(&mut self) {
        let host = FakeHost::new(0);
        host.now_ns.set(self.now_ns.get());
        self.now_ns = host.now_ns.clone();
        let clients = self.engine.clone();
        self.control = control(self.directory.path(), host, &clients);
        self.control.open_slots_again();
    }
}

fn open(columns: u32) -> SlotsRequest {
    SlotsRequest::Open {
        columns,
        slot_ns: SLOT_NS,
        reserve: Fraction {
            numerator: 1,
            denominator: 6,
        },
        hold: false,
    }
}

fn claim(requests: Vec<SlotRequest>) -> SlotsRequest {
    SlotsRequest::Claim {
        requests,
        all: false,
        generation: None,
    }
}

fn cell(column: u32) -> Cell {
    Cell { row: 0, column }
}

fn slot(column: u32, runs: &str, level: Level) -> SlotRequest {
    SlotRequest {
        cell: cell(column),
        runs: Runs::Client(runs.into()),
        level,
        expires_ns: None,
    }
}

fn free_of(report: &TokensReport, level: Level) -> (u64, u64) {
    let levels = report.levels.iter();
    let of_level = levels.filter(|tokens| tokens.level == level);
    of_level
        .map(|tokens| (tokens.free, tokens.spent))
        .next()
        .unwrap()
}

#[test]
fn without_a_table_each_request_says_how_to_open_one() {
    let mut world = World::of_root();
    for request in [
        SlotsRequest::Status,
        SlotsRequest::Close,
        claim(Vec::new()),
        SlotsRequest::Free { cells: Vec::new() },
        SlotsRequest::Tokens { account: None },
        SlotsRequest::Watch { freed: true },
    ] {
        let message = world.slots_refused(0, request);
        assert!(message.contains("`prorata slots open`"), "{message}");
    }
}

#[test]
fn only_root_opens_closes_sets_and_reserves() {
    let mut world = World::of_root();
    let reserve = SlotsRequest::Reserve {
        row: None,
        fraction: Fraction {
            numerator: 1,
            denominator: 2,
        },
        immediate: true,
    };
    let set = SlotsRequest::SetTokens {
        account: AccountName::User("alice".into()),
        level: Level::Hard,
        amount: Amount::Delta(1),
        weight: None,
    };
    world.open();
    for request in [open(10), SlotsRequest::Close, reserve.clone(), set.clone()] {
        let message = world.slots_refused(ALICE, request);
        assert!(message.contains("ask the daemon's owner"), "{message}");
    }
    assert_eq!(
        world.slots(0, reserve),
        SlotsAnswer::Reserved { revoked: 0 }
    );
    assert_eq!(free_of(&world.tokens(0, set), Level::Hard), (1, 0));
}

#[test]
fn a_user_claims_by_default_at_the_lowest_two_levels() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    let report = world.open();
    assert_eq!((report.columns, report.claimed), (12, 0));
    let (claimed, refused) = world.claim(
        ALICE,
        vec![
            slot(3, "encoder", Level::BestEffort),
            slot(4, "encoder", Level::Background),
            slot(5, "encoder", Level::Hard),
            slot(12, "encoder", Level::Background),
        ],
    );
    assert_eq!(claimed, [cell(3), cell(4)]);
    assert!(
        refused[0].contains("no token of level hard left in user alice")
            && refused[0].contains("`prorata slots tokens user:alice --level hard --add N`"),
        "{refused:?}"
    );
    assert!(
        refused[1].starts_with("there is no slot 0:12"),
        "{refused:?}"
    );
    let tokens = world.tokens(ALICE, SlotsRequest::Tokens { account: None });
    assert_eq!(tokens.account, "user alice");
    assert_eq!(free_of(&tokens, Level::BestEffort), (11, 1));
    let kept = world.slots(
        ALICE,
        SlotsRequest::Free {
            cells: vec![cell(3), cell(7)],
        },
    );
    assert_eq!(
        kept,
        SlotsAnswer::Freed {
            kept: vec![cell(7)]
        }
    );
}

#[test]
fn what_is_claimed_is_public_and_in_force_from_the_second_boundary() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    let path = world.open().path;
    let reader = Reader::open(path.as_ref()).unwrap();
    world.pass(1);
    world.claim(ALICE, vec![slot(3, "encoder", Level::BestEffort)]);
    assert_eq!(reader.snapshot().unwrap().claims.len(), 1);
    assert!(reader.at(0, 3).is_some() && reader.at(0, 15).is_some());
    assert!(reader.at(0, 2).is_none());
    world.slots(0, SlotsRequest::Close);
    assert!(!reader.is_open());
    assert!(!std::path::Path::new(&path).exists());
}

#[test]
fn only_what_is_managed_runs_in_slots() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    world.open();
    let mut ask = |runs| {
        let request = SlotRequest {
            runs,
            ..slot(1, "", Level::Background)
        };
        world.ask(ALICE, Request::Slots(claim(vec![request])))
    };
    for (runs, rule) in [
        (Runs::Client("nobody".into()), "no client named"),
        (Runs::Process(101), "is not managed"),
        (Runs::Process(4_000), "no process 4000"),
        (Runs::Thread(4_000), "no thread 4000"),
        (Runs::Thread(201), "is not managed"),
    ] {
        match ask(runs) {
            Response::Refused { message } => assert!(message.contains(rule), "{message}"),
            other => panic!("{other:?}"),
        }
    }
    for runs in [Runs::Process(100), Runs::Thread(100)] {
        assert!(matches!(ask(runs), Response::Slots(_)));
    }
}

#[test]
fn owners_are_told_who_took_their_slots_and_watchers_what_is_free() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    world.register(BOB, 200, "backup");
    world.open();
    world.give("bob", Level::Hard, 4);
    world.claim(ALICE, vec![slot(3, "encoder", Level::BestEffort)]);
    world.told();
    world.claim(BOB, vec![slot(3, "backup", Level::Hard)]);
    let ended = |why, level, runs: &str, by: Option<&str>| SlotsNews::Ended {
        cell: cell(3),
        runs: Runs::Client(runs.into()),
        level,
        why,
        by: by.map(str::to_owned),
    };
    let news = [News {
        audience: Audience::User(ALICE),
        news: ended(
            Ended::Preempted,
            Level::BestEffort,
            "encoder",
            Some("user bob"),
        ),
    }];
    assert_eq!(world.told(), news);
    // The client ends with its last process.
    world
        .engine
        .end(world.control.state.roots.last_key_value().unwrap().1[0]);
    world.control.remove_exited();
    let news = [
        News {
            audience: Audience::User(BOB),
            news: ended(Ended::ScheduleeEnded, Level::Hard, "backup", None),
        },
        News {
            audience: Audience::WantsFree,
            news: SlotsNews::Freed(vec![cell(3)]),
        },
    ];
    assert_eq!(world.told(), news);
}

#[test]
fn claims_expire_and_their_tokens_are_back() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    world.open();
    let request = SlotRequest {
        expires_ns: Some(20 * SLOT_NS),
        ..slot(3, "encoder", Level::BestEffort)
    };
    let journal = world.directory.path().join("journal");
    let length = || std::fs::metadata(&journal).unwrap().len();
    let before = length();
    world.claim(ALICE, vec![request]);
    assert_eq!(length(), before, "it waits for no disk");
    world.pass(19);
    assert_eq!(
        world
            .control
            .slots
            .open
            .as_ref()
            .unwrap()
            .table()
            .table()
            .claimed(),
        1
    );
    world.pass(1);
    assert_eq!(
        world
            .control
            .slots
            .open
            .as_ref()
            .unwrap()
            .table()
            .table()
            .claimed(),
        0
    );
    let why = world.told().into_iter().find_map(|news| match news.news {
        SlotsNews::Ended { why, .. } => Some(why),
        _ => None,
    });
    assert_eq!(why, Some(Ended::Expired));
}

#[test]
fn the_next_daemon_has_what_lasts() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    world.open();
    world.give("alice", Level::Hard, 3);
    let short = SlotRequest {
        expires_ns: Some(5_000_000_000),
        ..slot(4, "encoder", Level::Hard)
    };
    world.claim(ALICE, vec![slot(3, "encoder", Level::Hard), short]);
    world.crash();
    let open = world.control.slots.open.as_ref().unwrap();
    let claims: Vec<Cell> = open
        .table()
        .table()
        .claims()
        .map(|(cell, _)| cell)
        .collect();
    assert_eq!(claims, [cell(3)]);
    assert!(open.table().audit());
    let tokens = world.tokens(ALICE, SlotsRequest::Tokens { account: None });
    assert_eq!(free_of(&tokens, Level::Hard), (2, 1));
}

#[test]
fn a_journal_that_cannot_be_written_changes_nothing() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    let path = world.open().path;
    let reader = Reader::open(path.as_ref()).unwrap();
    let (before, generation) = (image(&world.control.state), reader.generation());
    faults::plan([true; 100]);
    let request = Request::Slots(claim(vec![slot(3, "encoder", Level::BestEffort)]));
    let answer = world.ask(ALICE, request);
    faults::plan([]);
    assert!(matches!(answer, Response::NotKept { .. }), "{answer:?}");
    assert_eq!(image(&world.control.state), before);
    assert_eq!(reader.generation(), generation);
    let open = world.control.slots.open.as_ref().unwrap();
    assert_eq!(open.table().table().claimed(), 0);
}

#[test]
fn a_table_changes_its_shape_only_while_nothing_is_claimed() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    let path = world.open().path;
    let old = Reader::open(path.as_ref()).unwrap();
    world.slots(0, open(24));
    assert!(!old.is_open());
    let new = Reader::open(path.as_ref()).unwrap();
    assert!(new.is_open());
    assert_eq!(new.geometry().columns(), 24);
    world.claim(ALICE, vec![slot(3, "encoder", Level::Background)]);
    let message = world.slots_refused(0, open(12));
    assert!(message.contains("1 claimed slots"), "{message}");
    for columns in [0, 4_097] {
        world.slots(0, SlotsRequest::Close);
        world.slots_refused(0, open(columns));
        world.open();
    }
}

#[test]
fn donations_move_what_there_is() {
    let mut world = World::of_root();
    world.register(BOB, 200, "backup");
    world.open();
    world.give("alice", Level::Gang, 3);
    let donate = SlotsRequest::Donate {
        to: AccountName::Client("backup".into()),
        level: Level::Gang,
        count: 5,
    };
    assert_eq!(
        world.slots(ALICE, donate),
        SlotsAnswer::Donated { moved: 3 }
    );
    let account = Some(AccountName::Client("backup".into()));
    let tokens = world.tokens(BOB, SlotsRequest::Tokens { account });
    assert_eq!(free_of(&tokens, Level::Gang), (3, 0));
    assert_eq!(tokens.account, "client backup");
}

#[test]
fn a_policy_gives_tokens_once_within_its_most_also_after_a_crash() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    world.open();
    let class = |members| Class {
        members,
        level: Level::Soft1,
        count: 4,
        weight: 2,
        most: 6,
    };
    let policy = Policy {
        classes: vec![class(Members::Group(ALICE)), class(Members::User(BOB))],
    };
    let admit = SlotsRequest::Admit { policy };
    world.slots_refused(ALICE, admit.clone());
    assert_eq!(world.slots(0, admit), SlotsAnswer::Admitted);
    let free = |world: &mut World, uid| {
        let tokens = world.tokens(uid, SlotsRequest::Tokens { account: None });
        free_of(&tokens, Level::Soft1)
    };
    assert_eq!(free(&mut world, ALICE), (4, 0));
    world.claim(ALICE, vec![slot(3, "encoder", Level::Soft1)]);
    assert_eq!(free(&mut world, ALICE), (3, 1));
    world.crash();
    assert_eq!(free(&mut world, ALICE), (3, 1));
    assert_eq!(free(&mut world, BOB), (4, 0));
    assert_eq!(free(&mut world, 0), (0, 0));
    let classes = vec![class(Members::User(0)); CLASSES + 1];
    let long = SlotsRequest::Admit {
        policy: Policy { classes },
    };
    let message = world.slots_refused(0, long);
    assert!(message.contains("a policy of 1025 classes"), "{message}");
}

#[test]
fn a_client_that_gave_its_tokens_away_makes_no_room_for_another() {
    let mut world = World::of_root();
    world.open();
    let policy = Policy {
        classes: vec![Class {
            members: Members::Client("player".into()),
            level: Level::Hard,
            count: 4,
            weight: 1,
            most: 4,
        }],
    };
    world.slots(0, SlotsRequest::Admit { policy });
    for (round, pid) in [100, 101].into_iter().enumerate() {
        world.register(ALICE, pid, "player");
        let player = Peer { pid, ..user(ALICE) };
        let donate = SlotsRequest::Donate {
            to: AccountName::User("bob".into()),
            level: Level::Hard,
            count: 4,
        };
        let moved = if round == 0 { 4 } else { 0 };
        let answer = world.ask_as(&player, Request::Slots(donate));
        assert_eq!(answer, Response::Slots(SlotsAnswer::Donated { moved }));
        let root = world.control.state.roots.last_key_value().unwrap().1[0];
        world.engine.end(root);
        world.control.remove_exited();
    }
    let tokens = world.tokens(BOB, SlotsRequest::Tokens { account: None });
    assert_eq!(free_of(&tokens, Level::Hard), (4, 0));
}

#[test]
fn an_asker_outside_of_clients_is_looked_for_once_a_second() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    world.open();
    let child = Peer {
        pid: 91,
        ..user(ALICE)
    };
    let owner_of = |world: &mut World, column| {
        let request = claim(vec![slot(column, "encoder", Level::BestEffort)]);
        world.ask_as(&child, Request::Slots(request));
        let table = world.control.slots.open.as_ref().unwrap().table().table();
        table.get(cell(column)).unwrap().owner.client
    };
    assert_eq!(owner_of(&mut world, 1), None);
    // Its parent.
    world.register(ALICE, ASKER, "parent");
    assert_eq!(owner_of(&mut world, 3), None);
    world.pass(99);
    assert_eq!(owner_of(&mut world, 5), None);
    world.pass(1);
    assert!(owner_of(&mut world, 7).is_some());
    // What the engine knows counts at once.
    world.register(ALICE, 101, "other");
    let other = Peer {
        pid: 101,
        ..user(ALICE)
    };
    other.outside_at_ns.set(Some(world.now_ns.get()));
    let request = claim(vec![slot(9, "encoder", Level::BestEffort)]);
    world.ask_as(&other, Request::Slots(request));
    let table = world.control.slots.open.as_ref().unwrap().table().table();
    assert!(table.get(cell(9)).unwrap().owner.client.is_some());
}

#[test]
fn claims_for_a_client_that_ended_meanwhile_are_gone() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    world.open();
    // The owner is the user: the asker is no client.
    world.claim(ALICE, vec![slot(3, "encoder", Level::BestEffort)]);
    let client = *world.control.state.roots.first_key_value().unwrap().0;
    world.control = control(world.directory.path(), FakeHost::new(0), &world.engine);
    let destroy = Operation::DestroyClient { client };
    world.control.happened(&[Change::Ledger(destroy)]);
    world.control.open_slots_again();
    let open = world.control.slots.open.as_ref().unwrap();
    assert_eq!(open.table().table().claimed(), 0);
}

#[test]
fn a_claim_that_expired_meanwhile_takes_no_token_from_one_that_lasts() {
    let mut world = World::of_root();
    world.register(ALICE, 100, "encoder");
    world.open();
    world.give("alice", Level::Hard, 1);
    let until = SlotRequest {
        expires_ns: Some(15_000_000_000),
        ..slot(3, "encoder", Level::Hard)
    };
    assert_eq!(world.claim(ALICE, vec![until]).0, [cell(3)]);
    world.now_ns.set(16_000_000_000);
    world.crash();
    assert_eq!(
        world.claim(ALICE, vec![slot(7, "encoder", Level::Hard)]).0,
        [cell(7)]
    );
    world.crash();
    let open = world.control.slots.open.as_ref().unwrap();
    let claims: Vec<Cell> = open
        .table()
        .table()
        .claims()
        .map(|(cell, _)| cell)
        .collect();
    assert_eq!(claims, [cell(7)]);
}
