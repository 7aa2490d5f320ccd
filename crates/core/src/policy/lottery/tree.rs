//! The tree lottery (1994, 4.2).

use rand_core::Rng;

use super::partial_sums::PartialSums;
use super::{Lottery, Seat, Seats, Selector};
use crate::policy::ClientIndex;
use crate::rng::below_wide;

/// A lottery over a tree of partial ticket sums with the clients at the
/// leaves (1994, 4.2).
///
/// `pick` and every change cost O(lg n) steps, n the highest index seen; a
/// change reads and writes one node on each level. 48 to 80 bytes a client.
pub type TreeLottery<R> = Lottery<Tree, R>;

/// The selector of [`TreeLottery`].
#[derive(Clone, Debug)]
pub struct Tree {
    seats: Seats,
    /// Leaf i is the weight of client i.
    sums: PartialSums<u128>,
}

impl<R: Rng> TreeLottery<R> {
    /// An empty lottery that draws from `rng`.
    pub fn new(rng: R) -> Self {
        let tree = Tree {
            seats: Seats::default(),
            sums: PartialSums::new(),
        };
        Lottery::over(tree, rng)
    }
}

impl Tree {
    /// The client that holds unit `winning` of the total weight, counted from
    /// zero in the order of the clients' indexes.
    fn holder(&self, mut winning: u128) -> ClientIndex {
        let leaf = self.sums.find(|left| {
            let goes_right = winning >= left;
            if goes_right {
                winning -= left;
            }
            goes_right
        });
        ClientIndex(leaf as u32)
    }
}

impl Selector for Tree {
    fn seat(&self, client: ClientIndex) -> Seat {
        self.seats.get(client)
    }

    fn reseat(&mut self, client: ClientIndex, from: Seat, to: Seat) {
        self.seats.set(client, to);
        let units = |seat: Seat| u128::from(seat.weight().units());
        if units(from) != units(to) {
            self.sums.replace(client.0 as usize, units(from), units(to));
        }
    }

    fn draw<R: Rng>(&mut self, rng: &mut R) -> Option<ClientIndex> {
        match self.sums.total() {
            0 => None,
            total => Some(self.holder(below_wide(rng, total))),
        }
    }
}
