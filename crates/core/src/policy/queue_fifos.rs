//! A first-in-first-out queue for each number of tickets that many share.
//!
//! A client that used a whole quantum moves back by its stride. Clients with
//! equal tickets have equal strides, so they run again in the order in which
//! they ran, without sorting. A tournament decides between the queues' heads.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::ClientIndex;
use super::queue::Entry;
use super::queue_chunks::{Chunks, Run};

/// Queues; a power of two.
const FIFOS: usize = 128;
/// A number of tickets has its queue among as many neighbours.
const NEIGHBOURS: usize = 8;
/// As many clients are worth a queue.
const MANY: u32 = 8;
/// The client so far behind a head is to be fetched while the head runs.
const AHEAD: usize = 12;
/// The head of an empty queue.
const NOBODY: Entry = Entry {
    pass: 0,
    client: ClientIndex(u32::MAX),
};

/// Which queue a client's equals wait in, as it was when the client came to
/// compete: a queue may be given to another number of tickets since.
#[derive(Clone, Copy, Debug)]
pub(super) struct FifoIndex(u8);

impl FifoIndex {
    pub(super) const NONE: Self = Self(u8::MAX);
}

#[derive(Clone, Debug)]
struct Fifo {
    tickets: u32,
    /// Clients that compete with these tickets; some may not be counted.
    clients: u32,
    /// In order. The tickets of earlier owners may be among them.
    entries: Run,
}

impl Fifo {
    const EMPTY: Self = Self {
        tickets: 0,
        clients: 0,
        entries: Run::EMPTY,
    };
}

/// Entries in the order of their coming, which is that of their passes.
#[derive(Clone, Debug)]
pub(super) struct Fifos {
    /// By [`FifoIndex`].
    fifos: Vec<Fifo>,
    contest: Box<Tournament>,
}

impl Fifos {
    pub(super) fn new() -> Self {
        Self {
            fifos: alloc::vec![Fifo::EMPTY; FIFOS],
            contest: Box::new(Tournament::new()),
        }
    }

    /// Drops all entries.
    pub(super) fn clear(&mut self, chunks: &mut Chunks) {
        for fifo in &mut self.fifos {
            chunks.release(core::mem::replace(&mut fifo.entries, Run::EMPTY));
        }
        *self.contest = Tournament::new();
    }

    /// A client comes to compete: the queue of its equals, unless others need
    /// all queues that it could be. Of those the one that fewest need is taken
    /// over.
    pub(super) fn admit(&mut self, tickets: u32) -> FifoIndex {
        let scattered = tickets.wrapping_mul(0x9e37_79b9) >> (u32::BITS - FIFOS.ilog2());
        let neighbours = (0..NEIGHBOURS).map(|step| (scattered as usize + step) % FIFOS);
        let mut poorest = None;
        let mut fewest = MANY;
        for index in neighbours {
            let fifo = &mut self.fifos[index];
            if fifo.tickets == tickets {
                fifo.clients += 1;
                return FifoIndex(index as u8);
            }
            if fifo.clients < fewest {
                fewest = fifo.clients;
                poorest = Some(index);
            }
        }
        let Some(index) = poorest else {
            return FifoIndex::NONE;
        };
        let fifo = &mut self.fifos[index];
        fifo.tickets = tickets;
        fifo.clients = 1;
        FifoIndex(index as u8)
    }

    /// A client with tickets ceases to compete.
    pub(super) fn dismiss(&mut self, index: FifoIndex, tickets: u32) {
        if let Some(fifo) = self.fifos.get_mut(usize::from(index.0))
            && fifo.tickets == tickets
        {
            fifo.clients = fifo.clients.saturating_sub(1);
        }
    }

    /// Appends the entry of a client with tickets to the queue of its equals,
    /// if it belongs there.
    #[inline]
    pub(super) fn push(
        &mut self,
        index: FifoIndex,
        tickets: u32,
        entry: Entry,
        chunks: &mut Chunks,
    ) -> bool {
        let index = usize::from(index.0);
        let Some(fifo) = self.fifos.get_mut(index) else {
            return false;
        };
        if fifo.clients < MANY || fifo.tickets != tickets {
            return false;
        }
        match fifo.entries.last() {
            Some(last) if !last.is_before(entry) => return false,
            Some(_) => {}
            None => self.contest.enter(index, entry),
        }
        chunks.push(&mut fifo.entries, entry);
        true
    }

    /// The first entry. Has a client fetched that comes soon after it.
    #[inline]
    pub(super) fn first(&self, fetch: impl Fn(ClientIndex), chunks: &Chunks) -> Option<Entry> {
        let (index, first) = self.contest.winner()?;
        if let Some(later) = chunks.get(&self.fifos[index].entries, AHEAD) {
            fetch(later.client);
        }
        Some(first)
    }

    /// The first entry, be it live or not.
    #[inline]
    pub(super) fn head(&self) -> Option<Entry> {
        self.contest.winner().map(|(_, first)| first)
    }

    /// The client that comes after so many others in the first one's queue.
    #[inline]
    pub(super) fn likely_after(&self, others: usize, chunks: &Chunks) -> Option<ClientIndex> {
        let (index, _) = self.contest.winner()?;
        let entry = chunks.get(&self.fifos[index].entries, others)?;
        Some(entry.client)
    }

    /// Whether an entry is the first.
    #[inline]
    pub(super) fn is_first(&self, entry: Entry) -> bool {
        self.contest
            .winner()
            .is_some_and(|(_, first)| first == entry)
    }

    /// Takes the first entry away, where there is any.
    #[inline]
    pub(super) fn remove_first(&mut self, chunks: &mut Chunks) {
        if let Some((index, _)) = self.contest.winner() {
            let entries = &mut self.fifos[index].entries;
            chunks.pop(entries);
            match chunks.get(entries, 0) {
                Some(head) => self.contest.enter(index, head),
                None => self.contest.withdraw(index),
            }
        }
    }
}

/// Which of the heads comes first: a complete binary tree, in which each node
/// names the better one of its two children's.
#[derive(Clone, Debug)]
struct Tournament {
    /// By queue.
    heads: [Entry; FIFOS],
    /// By queue: whether there is a head.
    present: [bool; FIFOS],
    /// By node, from 1 for the root, whose children are 2 and 3; the last half
    /// are the queues themselves.
    winners: [u8; 2 * FIFOS],
}

impl Tournament {
    fn new() -> Self {
        let mut tournament = Self {
            heads: [NOBODY; FIFOS],
            present: [false; FIFOS],
            winners: [0; 2 * FIFOS],
        };
        for index in 0..FIFOS {
            tournament.winners[FIFOS + index] = index as u8;
        }
        for node in (1..FIFOS).rev() {
            tournament.winners[node] = tournament.winners[2 * node];
        }
        tournament
    }

    #[inline]
    fn winner(&self) -> Option<(usize, Entry)> {
        let index = usize::from(self.winners[1]);
        self.present[index].then(|| (index, self.heads[index]))
    }

    #[inline]
    fn enter(&mut self, index: usize, head: Entry) {
        self.heads[index] = head;
        self.present[index] = true;
        self.play(index);
    }

    #[inline]
    fn withdraw(&mut self, index: usize) {
        self.present[index] = false;
        self.play(index);
    }

    /// Decides the matches on a queue's way to the root. The winner is as random
    /// as the clients' order, so nothing branches on it.
    #[inline]
    fn play(&mut self, index: usize) {
        let mut node = FIFOS + index;
        let mut winner = index;
        while node > 1 {
            let rival = usize::from(self.winners[node ^ 1]);
            let loses = self.heads[rival].is_before(self.heads[winner]) | !self.present[winner];
            let loses = loses & self.present[rival];
            winner = core::hint::select_unpredictable(loses, rival, winner);
            node /= 2;
            self.winners[node] = winner as u8;
        }
    }
}
