//! All clients, and which of them the next decision may concern.
//!
//! Most clients of a crowd sleep for long times. A client is *dormant* while it sleeps and nothing
//! about it is left to do. A decision passes over dormant clients, so its cost depends on the
//! lively ones only. Each access that may change a client wakes it up here; it is dormant again after a
//! decision without anything to do for it.

use prorata_core::ids::ClientId;

use crate::client::Client;
use crate::process::Treatment;
use crate::time::SECOND_NS;

/// For so long a client must not have run. One that naps more briefly is sampled every quantum.
const DORMANT_AFTER_NS: u64 = SECOND_NS / 2;

/// Clients by index, with the indices of the lively ones.
#[derive(Default, Debug)]
pub(crate) struct Clients {
    all: Vec<Option<Client>>,
    /// In ascending order.
    lively: Vec<usize>,
    /// Index of the dormant client that is looked at next.
    next_dormant: usize,
}

impl Clients {
    /// One more than the highest index.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, id: ClientId) -> Option<&Client> {
        self.at(id.index() as usize)
            .filter(|client| client.id == id)
    }

    pub(crate) fn at(&self, index: usize) -> Option<&Client> {
        self.all.get(index)?.as_ref()
    }

    /// A client that may change, and so is lively from now on.
    pub(crate) fn get_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        self.get(id)?;
        self.at_mut(id.index() as usize)
    }

    /// The same for the client at this index.
    pub(crate) fn at_mut(&mut self, index: usize) -> Option<&mut Client> {
        self.at(index)?;
        self.wake(index);
        self.all[index].as_mut()
    }

    /// A client that stays dormant unless [`Self::wake`] is called.
    pub(crate) fn at_quietly(&mut self, index: usize) -> Option<&mut Client> {
        self.all.get_mut(index)?.as_mut()
    }

    /// The next decision concerns the client at this index.
    pub(crate) fn wake(&mut self, index: usize) {
        if let Err(place) = self.lively.binary_search(&index) {
            self.lively.insert(place, index);
        }
    }

    /// The next decision concerns all clients.
    pub(crate) fn wake_all(&mut self) {
        self.lively.clear();
        let indices = (0..self.all.len()).filter(|&index| self.all[index].is_some());
        self.lively.extend(indices);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Client> {
        self.all.iter().flatten()
    }

    /// All of them. Dormant ones stay dormant.
    pub(crate) fn iter_quietly(&mut self) -> impl Iterator<Item = &mut Client> {
        self.all.iter_mut().flatten()
    }

    pub(crate) fn lively_indices(&self) -> &[usize] {
        &self.lively
    }

    pub(crate) fn lively(&self) -> impl Iterator<Item = &Client> {
        self.lively.iter().filter_map(|&index| self.at(index))
    }

    pub(crate) fn lively_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        let mut rest = &mut self.all[..];
        let mut passed = 0;
        self.lively.iter().filter_map(move |&index| {
            let (_, tail) = std::mem::take(&mut rest).split_at_mut(index - passed);
            let (client, tail) = tail.split_first_mut()?;
            rest = tail;
            passed = index + 1;
            client.as_mut()
        })
    }

    /// Adds the indices of the next dormant clients, in turn, until they have so many processes.
    pub(crate) fn next_dormant(&mut self, processes: usize, indices: &mut Vec<usize>) {
        let mut left = processes;
        for _ in 0..self.all.len() {
            if left == 0 {
                break;
            }
            let index = self.next_dormant % self.all.len();
            self.next_dormant = index + 1;
            if let Some(client) = &self.all[index]
                && self.lively.binary_search(&index).is_err()
            {
                indices.push(index);
                left = left.saturating_sub(client.processes.len());
            }
        }
    }

    /// The client with this identifier, which `new` makes if there is none. A client of an earlier
    /// generation gives way.
    pub(crate) fn get_or_insert(
        &mut self,
        id: ClientId,
        new: impl FnOnce() -> Client,
    ) -> &mut Client {
        let index = id.index() as usize;
        if self.all.len() <= index {
            self.all.resize_with(index + 1, || None);
        }
        self.wake(index);
        let entry = &mut self.all[index];
        match entry {
            Some(client) if client.id == id => {}
            _ => *entry = Some(new()),
        }
        entry.as_mut().expect("it was just put there")
    }

    pub(crate) fn remove(&mut self, id: ClientId) -> Option<Client> {
        self.get(id)?;
        let index = id.index() as usize;
        self.lively.retain(|&lively| lively != index);
        self.all[index].take()
    }

    /// After a decision: clients that slept for long and have nothing left to do become dormant.
    /// `in_groups`: clients are to have control groups.
    pub(crate) fn rest(&mut self, now_ns: u64, in_groups: bool) {
        let all = &self.all;
        self.lively.retain(|&index| {
            let client = all[index].as_ref();
            client.is_some_and(|client| !client.is_dormant(now_ns, in_groups))
        });
    }
}

impl Client {
    /// Whether it sleeps, and nothing about it is left to do, to tell or to find out.
    fn is_dormant(&self, now_ns: u64, in_groups: bool) -> bool {
        let sleeps = self.runnable == 0
            && now_ns.saturating_sub(self.ran_ns) >= DORMANT_AFTER_NS
            && self.uncharged_ns == 0;
        let is_free = self.treatment == Treatment::Normal
            && !self.is_winner()
            && !self.won_before
            && !self.is_paused()
            && !self.answers_signal
            && self.place.is_none()
            && self.bound.is_none();
        let is_settled = !self.unsettled
            && !self.defied
            && !self.pays_debt
            && self.stopping_since_ns.is_none()
            && (self.grouped || !in_groups);
        let is_told = self.runnable_told == 0
            && self.affinity == self.affinity_told
            && self.quantum_ns == self.quantum_told_ns
            && self.nice.is_told()
            && self.activity_told == Some(self.activity())
            && !self.lacks_watch();
        sleeps && is_free && is_settled && is_told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_id::ProcessId;

    fn id(index: u32) -> ClientId {
        ClientId::from_parts(index, 0)
    }

    fn some(count: u32) -> Clients {
        let mut clients = Clients::default();
        for index in 0..count {
            let client = clients.get_or_insert(id(index), || Client::new(id(index), 0));
            client.activity_told = Some(client.activity());
            client.watched = Some(ProcessId {
                pid: index,
                start_time_ticks: 0,
            });
        }
        clients
    }

    #[test]
    fn a_client_is_dormant_until_it_may_have_changed() {
        let mut clients = some(10);
        assert_eq!(clients.lively_indices().len(), 10);
        clients.rest(SECOND_NS, false);
        assert!(clients.lively_indices().is_empty());
        clients.get_mut(id(7)).expect("it is there").runnable = 1;
        assert!(clients.get(id(3)).is_some() && clients.at_quietly(3).is_some());
        clients.at_mut(2).expect("it is there").unsettled = true;
        clients.get_mut(id(5));
        assert_eq!(clients.lively_indices(), [2, 5, 7]);
        clients.rest(SECOND_NS, false);
        assert_eq!(clients.lively_indices(), [2, 7]);
        let changed: Vec<u32> = clients
            .lively_mut()
            .map(|client| client.id.index())
            .collect();
        assert_eq!(changed, [2, 7]);
        assert_eq!(clients.lively().count(), 2);
        clients.rest(SECOND_NS, true);
        assert!(clients.remove(id(7)).is_some() && clients.remove(id(7)).is_none());
        assert_eq!(clients.lively_indices(), [2]);
        clients.wake_all();
        assert_eq!(clients.lively_indices(), [0, 1, 2, 3, 4, 5, 6, 8, 9]);
        // Without its control group a client is not done.
        clients.rest(SECOND_NS, true);
        assert_eq!(clients.lively_indices().len(), 9);
    }

    #[test]
    fn a_client_that_ran_lately_is_lively() {
        let mut clients = some(2);
        clients.get_mut(id(1)).expect("it is there").ran_ns = 1;
        clients.rest(DORMANT_AFTER_NS, false);
        assert_eq!(clients.lively_indices(), [1]);
        clients.rest(DORMANT_AFTER_NS + 1, false);
        assert!(clients.lively_indices().is_empty());
    }

    #[test]
    fn an_index_names_its_latest_client() {
        let mut clients = some(1);
        let later = ClientId::from_parts(0, 1);
        clients.get_or_insert(later, || Client::new(later, 0));
        assert!(clients.get(id(0)).is_none() && clients.get_mut(id(0)).is_none());
        assert!(clients.remove(id(0)).is_none());
        assert!(clients.get(later).is_some());
        assert_eq!(clients.iter().count(), 1);
    }

    #[test]
    fn dormant_clients_are_looked_at_in_turn() {
        let mut clients = some(5);
        clients.rest(SECOND_NS, false);
        clients.get_mut(id(1));
        // Without a process they count for nothing.
        let mut indices = Vec::new();
        clients.next_dormant(1, &mut indices);
        assert_eq!(indices, [0, 2, 3, 4]);
        assert!(Clients::default().lively_mut().next().is_none());
        Clients::default().next_dormant(1, &mut indices);
        assert_eq!(indices.len(), 4);
    }
}
