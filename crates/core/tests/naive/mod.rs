//! Stride scheduling (1995, Figures 3 and 5) written as plainly as possible:
//! unbounded passes, whole divisions, and a look at all clients for each pick.
//!
//! It rounds where the policy says that it rounds (the global pass to 2^-64, a
//! remain to a unit of service), so that both have to agree on every pick. It
//! knows no limits.

use prorata_core::policy::{ClientIndex, Policy, PolicyError, STRIDE1};

/// A pass or a remain: `(whole * tickets + rest) / tickets`.
#[derive(Clone, Copy, Default)]
struct Fraction {
    whole: i128,
    rest: i128,
}

impl Fraction {
    fn from_service(service: i128, tickets: i128) -> Self {
        Self {
            whole: service.div_euclid(tickets),
            rest: service.rem_euclid(tickets),
        }
    }

    fn service(self, tickets: i128) -> i128 {
        self.whole * tickets + self.rest
    }
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Left,
    Ticketless,
    Competing,
}

#[derive(Clone)]
struct Client {
    state: State,
    taken: bool,
    /// The last above zero.
    tickets: i128,
    /// A pass while competing, else a remain.
    place: Fraction,
    used_rest: i128,
    quantum: i128,
}

#[derive(Default)]
pub struct NaiveStride {
    clients: Vec<Option<Client>>,
    global: i128,
    /// Of the global pass, in units of 2^-64.
    part: u64,
    total: i128,
    /// Service for which clients were charged, and for which time has passed.
    charged: i128,
    passed: i128,
}

impl NaiveStride {
    fn joined(&mut self, client: ClientIndex) -> Result<&mut Client, PolicyError> {
        match self.clients.get_mut(client.0 as usize) {
            Some(Some(known)) if known.state != State::Left => Ok(known),
            _ => Err(PolicyError::NotJoined(client)),
        }
    }

    /// Part of the global pass, in units of `1 / tickets`.
    fn global_part(&self, tickets: i128) -> i128 {
        (i128::from(self.part) * tickets) >> 64
    }

    /// Time has passed for so much service since the start.
    fn pass_until(&mut self, service: i128) {
        if service > self.passed {
            self.advance_global(service - self.passed);
            self.passed = service;
        }
    }

    fn advance_global(&mut self, service: i128) {
        if self.total > 0 {
            // The stride is rounded to 2^-64 passes, and then the step is.
            let stride = (i128::from(STRIDE1) << 64) / self.total;
            let whole = service * (stride >> 64) * (1 << 20);
            let part = (service * (stride & i128::from(u64::MAX))) >> 44;
            let pass = whole + part + i128::from(self.part);
            self.global += pass >> 64;
            self.part = pass as u64;
        }
    }

    /// Takes a client out of the competition: what remains, in service.
    fn withdraw(&mut self, client: ClientIndex) -> i128 {
        let known = self.clients[client.0 as usize].clone().unwrap();
        if known.state != State::Competing {
            return known.place.service(known.tickets);
        }
        let ahead = (known.place.whole - self.global) * known.tickets + known.place.rest;
        let remain = ahead - self.global_part(known.tickets);
        self.total -= known.tickets;
        remain
    }

    fn settle(&mut self, client: ClientIndex, state: State, tickets: i128, remain: i128) {
        let part = self.global_part(tickets);
        let global = self.global;
        let known = self.clients[client.0 as usize].as_mut().unwrap();
        known.state = state;
        if state == State::Competing {
            known.tickets = tickets;
            known.place = Fraction::from_service(remain + part, tickets);
            known.place.whole += global;
            self.total += tickets;
        } else {
            known.place = Fraction::from_service(remain, known.tickets);
        }
    }

    fn compete(&mut self, client: ClientIndex, tickets: u32, remain: i128) {
        let state = if tickets == 0 {
            State::Ticketless
        } else {
            State::Competing
        };
        self.settle(client, state, tickets.into(), remain);
    }
}

impl Policy for NaiveStride {
    fn join(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        let index = client.0 as usize;
        if index >= self.clients.len() {
            self.clients.resize(index + 1, None);
        }
        let known = self.clients[index].get_or_insert(Client {
            state: State::Left,
            taken: false,
            tickets: 1,
            place: Fraction::from_service(STRIDE1.into(), 1),
            used_rest: 0,
            quantum: 1,
        });
        if known.state != State::Left {
            return Err(PolicyError::AlreadyJoined(client));
        }
        let remain = self.withdraw(client);
        self.compete(client, tickets, remain);
        Ok(())
    }

    fn leave(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        self.joined(client)?.taken = false;
        let remain = self.withdraw(client);
        self.settle(client, State::Left, 0, remain);
        Ok(())
    }

    fn forget(&mut self, client: ClientIndex) {
        let _ = self.leave(client);
        if let Some(known) = self.clients.get_mut(client.0 as usize) {
            *known = None;
        }
    }

    fn set_tickets(&mut self, client: ClientIndex, tickets: u32) -> Result<(), PolicyError> {
        let known = self.joined(client)?;
        let competes = known.state == State::Competing;
        if competes != (tickets > 0) || competes && known.tickets != i128::from(tickets) {
            let remain = self.withdraw(client);
            self.compete(client, tickets, remain);
        }
        Ok(())
    }

    fn pick(&mut self) -> Option<ClientIndex> {
        let waiting = self
            .clients
            .iter()
            .enumerate()
            .filter_map(|(index, client)| {
                let client = client.as_ref()?;
                (client.state == State::Competing && !client.taken)
                    .then_some((client.place.whole, index as u32))
            });
        waiting.min().map(|(_, index)| ClientIndex(index))
    }

    fn take(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        self.joined(client)?.taken = true;
        Ok(())
    }

    fn untake(&mut self, client: ClientIndex) -> Result<(), PolicyError> {
        self.joined(client)?.taken = false;
        Ok(())
    }

    fn charge(&mut self, client: ClientIndex, used: u64, quantum: u64) -> Result<(), PolicyError> {
        let known = self.joined(client)?;
        if quantum == 0 {
            return Err(PolicyError::ZeroQuantum(client));
        }
        let (used, quantum) = (i128::from(used), i128::from(quantum));
        if known.quantum != quantum && used != quantum {
            known.used_rest = known.used_rest * quantum / known.quantum;
            known.quantum = quantum;
        }
        let mut service = i128::from(STRIDE1);
        if used != quantum {
            let dividend = used * service + known.used_rest;
            service = dividend / quantum;
            known.used_rest = dividend % quantum;
        }
        known.taken = false;
        known.place =
            Fraction::from_service(known.place.service(known.tickets) + service, known.tickets);
        self.charged += service;
        self.pass_until(self.charged);
        Ok(())
    }

    fn pass_time(&mut self, uncharged: u64, quantum: u64) {
        let service = i128::from(uncharged) * i128::from(STRIDE1) / i128::from(quantum);
        self.pass_until(self.charged + service);
    }

    fn total_tickets(&self) -> u64 {
        self.total as u64
    }

    fn len(&self) -> usize {
        self.clients
            .iter()
            .flatten()
            .filter(|client| client.state != State::Left)
            .count()
    }
}
