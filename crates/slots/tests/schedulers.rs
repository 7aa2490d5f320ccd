//! What library schedulers plan, and what they do about lost slots.

use prorata_slots::{
    BestEffort, CacheSensitive, Cell, EventDriven, Gang, Geometry, Periodic, Scheduler, View,
};

const COLUMNS: u32 = 12;

fn empty(rows: u32) -> View {
    View::new(rows, COLUMNS, |_| true)
}

fn at(row: u32, column: u32) -> Cell {
    Cell { row, column }
}

/// The view after these cells were claimed.
fn with(mut view: View, cells: &[Cell]) -> View {
    cells.iter().for_each(|&cell| view.close(cell));
    view
}

#[test]
fn a_periodic_task_makes_up_in_the_window_or_moves_whole() {
    let mut scheduler = Periodic::of_slots(1, 4);
    let held = scheduler.plan(&empty(2)).unwrap();
    assert_eq!(held, [at(0, 0), at(0, 4), at(0, 8)]);
    let view = with(empty(2), &held);
    let reply = scheduler.reply(at(0, 4), &held, &view);
    assert_eq!((reply.claim, reply.free), (vec![at(0, 5)], vec![]));
    // The window of the lost slot is full: the task goes to the other CPU.
    let full = with(view, &[4, 5, 6, 7].map(|column| at(0, column)));
    let left = [at(0, 0), at(0, 8)];
    let reply = scheduler.reply(at(0, 4), &left, &full);
    assert_eq!(reply.free, left);
    assert_eq!(reply.claim, [at(1, 0), at(1, 4), at(1, 8)]);
    // A task that may use one CPU only has less then.
    scheduler.row = Some(0);
    let reply = scheduler.reply(at(0, 4), &left, &full);
    assert_eq!((reply.claim, reply.free), (vec![], vec![]));
}

#[test]
fn time_becomes_slots_that_keep_the_promise() {
    let geometry = Geometry::new(1, COLUMNS, 5_000_000, 0).unwrap();
    let of = |time_ms: u64, period_ms: u64| {
        let periodic = Periodic::of_time(&geometry, time_ms * 1_000_000, period_ms * 1_000_000);
        periodic.map(|task| (task.windows.slots, task.windows.period))
    };
    assert_eq!(of(4, 20).unwrap(), (1, 4));
    assert_eq!(of(6, 21).unwrap(), (2, 4));
    assert_eq!(of(60, 60).unwrap(), (12, 12));
    for (time, period) in [(21, 21), (1, 4), (1, 65)] {
        assert!(of(time, period).is_err(), "{time} of {period}");
    }
}

#[test]
fn a_gang_moves_in_its_column_or_leaves_it_whole() {
    let mut gang = Gang {
        threads: 2,
        columns: 2,
        preferred: vec![1],
    };
    let held = gang.plan(&empty(3)).unwrap();
    assert_eq!(held, [at(1, 0), at(0, 0), at(1, 1), at(0, 1)]);
    let view = with(empty(3), &held);
    let reply = gang.reply(at(0, 0), &[at(1, 0), at(1, 1), at(0, 1)], &view);
    assert_eq!((reply.claim, reply.free), (vec![at(2, 0)], vec![]));
    let full = with(view, &[at(2, 0), at(2, 1)]);
    let reply = gang.reply(at(0, 0), &[at(1, 0), at(1, 1), at(0, 1)], &full);
    assert_eq!(reply.free, [at(1, 0)]);
    assert_eq!(reply.claim, [at(1, 2), at(0, 2)]);
    // It takes whole columns when some become free.
    assert_eq!(gang.more(&[at(1, 1), at(0, 1)], &full).len(), 2);
    assert_eq!(gang.plan(&empty(1)), None);
}

#[test]
fn a_cache_sensitive_task_has_one_run_or_keeps_what_is_left() {
    let mut scheduler = CacheSensitive { slots: 4 };
    let held = scheduler.plan(&empty(1)).unwrap();
    assert_eq!(held, [0, 1, 2, 3].map(|column| at(0, column)));
    let left = [0, 1, 3].map(|column| at(0, column));
    let reply = scheduler.reply(at(0, 2), &left, &with(empty(1), &held));
    assert_eq!(reply.free, left);
    assert_eq!(reply.claim, [4, 5, 6, 7].map(|column| at(0, column)));
    let full = View::new(1, COLUMNS, |cell| cell.column % 4 == 0);
    let reply = scheduler.reply(at(0, 2), &left, &full);
    assert_eq!((reply.claim, reply.free), (vec![], vec![]));
}

#[test]
fn best_effort_takes_what_is_left_and_more_when_there_is_more() {
    let mut scheduler = BestEffort {
        slots: 3,
        row: Some(0),
    };
    let two = View::new(1, COLUMNS, |cell| cell.column > 9);
    let held = scheduler.plan(&two).unwrap();
    assert_eq!(held, [at(0, 10), at(0, 11)]);
    assert_eq!(scheduler.more(&held, &with(empty(1), &held)), [at(0, 0)]);
    assert!(scheduler.wants_free());
}

#[test]
fn an_event_has_slots_before_its_deadline_only() {
    let mut scheduler = EventDriven {
        slots: 3,
        from: 10,
        deadline: 15,
        row: None,
    };
    let held = scheduler.plan(&empty(1)).unwrap();
    assert_eq!(held, [at(0, 10), at(0, 11), at(0, 0)]);
    let reply = scheduler.reply(at(0, 11), &held, &with(empty(1), &held));
    assert_eq!(reply.claim, [at(0, 1)]);
    scheduler.deadline = 12;
    assert_eq!(scheduler.plan(&empty(1)), None);
}
