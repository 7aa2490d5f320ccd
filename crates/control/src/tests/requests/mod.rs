//! The effect and the refusals of each request, on a made-up machine.

mod clients;
mod currencies;
mod daemon;
mod rest;
mod rights;
mod slots;
mod transfers;

use std::cell::Cell;
use std::rc::Rc;

use prorata_protocol::{
    ClientReport, ClientState, CpuLimit, CurrencyReport, Funding, PolicyName, Request, Response,
    TicketReport, TransferPortion,
};

use crate::control::Control;
use crate::peer::Peer;
use crate::testing::{
    ALICE, ASKER, BOB, FakeEngine, FakeHost, ask, control, fast_directory, image, user,
};

/// A daemon on a made-up machine.
pub(super) struct World {
    pub control: Control,
    pub engine: FakeEngine,
    /// The machine's clock.
    pub now_ns: Rc<Cell<u64>>,
    pub directory: tempfile::TempDir,
}

impl World {
    /// Root's daemon, which serves every user.
    pub fn of_root() -> World {
        Self::of(0)
    }

    pub fn of(daemon_uid: u32) -> World {
        let directory = fast_directory();
        let engine = FakeEngine::default();
        let host = FakeHost::new(daemon_uid);
        let now_ns = Rc::clone(&host.now_ns);
        let control = control(directory.path(), host, &engine);
        World {
            control,
            engine,
            now_ns,
            directory,
        }
    }

    pub fn ask(&mut self, uid: u32, request: Request) -> Response {
        self.ask_as(&user(uid), request)
    }

    pub fn ask_as(&mut self, peer: &Peer, request: Request) -> Response {
        let before = image(&self.control.state);
        let response = ask(&mut self.control, peer, request);
        if matches!(response, Response::Refused { .. }) {
            assert_eq!(
                before,
                image(&self.control.state),
                "{response:?} changed something"
            );
        }
        response
    }

    pub fn done(&mut self, uid: u32, request: Request) {
        assert_eq!(self.ask(uid, request), Response::Done);
    }

    pub fn created(&mut self, uid: u32, request: Request) -> String {
        match self.ask(uid, request) {
            Response::Created(id) => id,
            other => panic!("{other:?}"),
        }
    }

    pub fn refused(&mut self, uid: u32, request: Request) -> String {
        match self.ask(uid, request) {
            Response::Refused { message } => message,
            other => panic!("{other:?}"),
        }
    }

    pub fn register(&mut self, uid: u32, pid: u32, name: &str) -> ClientReport {
        match self.ask(uid, register(pid, Some(name), 100, None)) {
            Response::Client(report) => report,
            other => panic!("{other:?}"),
        }
    }

    pub fn clients(&mut self, uid: u32) -> Vec<ClientReport> {
        match self.ask(uid, Request::Clients) {
            Response::Clients(clients) => clients,
            other => panic!("{other:?}"),
        }
    }

    pub fn client_tickets(&mut self, name: &str) -> Vec<(u32, String)> {
        let clients = self.clients(0);
        clients
            .into_iter()
            .find(|client| client.name == name)
            .unwrap()
            .tickets
    }

    pub fn currencies(&mut self, uid: u32) -> Vec<CurrencyReport> {
        match self.ask(uid, Request::Currencies) {
            Response::Currencies(currencies) => currencies,
            other => panic!("{other:?}"),
        }
    }

    pub fn currency_names(&mut self, uid: u32) -> Vec<String> {
        self.currencies(uid)
            .into_iter()
            .map(|currency| currency.name)
            .collect()
    }

    pub fn tickets(&mut self, uid: u32, currency: Option<&str>) -> Vec<TicketReport> {
        let currency = currency.map(str::to_owned);
        match self.ask(uid, Request::Tickets { currency }) {
            Response::Tickets(tickets) => tickets,
            other => panic!("{other:?}"),
        }
    }
}

pub(super) fn register(
    pid: u32,
    name: Option<&str>,
    amount: u32,
    currency: Option<&str>,
) -> Request {
    let (name, funding) = (name.map(str::to_owned), funding(amount, currency));
    Request::Register {
        pid,
        name,
        funding,
        quantum_ns: None,
        max: None,
        adopts: false,
    }
}

pub(super) fn funding(amount: u32, currency: Option<&str>) -> Funding {
    Funding {
        amount,
        currency: currency.map(str::to_owned),
    }
}

pub(super) fn set_tickets(client: &str, amount: u32, currency: Option<&str>) -> Request {
    Request::SetTickets {
        client: client.into(),
        funding: funding(amount, currency),
    }
}

pub(super) fn create(name: &str, mode: u16) -> Request {
    Request::CreateCurrency {
        name: name.into(),
        owner: None,
        mode: Some(mode),
    }
}

pub(super) fn issue(amount: u32, currency: &str, target: Option<&str>) -> Request {
    let target = target.map(str::to_owned);
    Request::Issue {
        funding: funding(amount, Some(currency)),
        target,
    }
}

pub(super) fn lend(from: &str, to: &str, amount: u32) -> Request {
    Request::Transfer {
        from: from.into(),
        portion: TransferPortion::Part {
            currency: None,
            shares: vec![(to.into(), amount)],
        },
        hold: false,
    }
}
