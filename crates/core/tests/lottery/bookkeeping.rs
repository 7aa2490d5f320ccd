//! What every lottery says and refuses, whatever it draws (see `Policy`).

use prorata_core::policy::inverse::InverseLottery;
use prorata_core::policy::lottery::{ListLottery, ListOrder};
use prorata_core::policy::{ClientIndex, MAX_CLIENTS, Policy, PolicyError};
use prorata_core::rng::{SeedableRng, Xoshiro256PlusPlus};

use crate::every_lottery::every_lottery;

/// The lotteries and the inverse lottery.
fn each(test: impl Fn(&str, &mut dyn Policy)) {
    for (name, mut lottery) in every_lottery(1) {
        test(name, &mut *lottery);
    }
    test("inverse", &mut inverse());
}

fn inverse() -> InverseLottery<Xoshiro256PlusPlus> {
    InverseLottery::new(Xoshiro256PlusPlus::seed_from_u64(1))
}

#[test]
fn refusals_change_nothing() {
    each(|name, lottery| {
        let (known, unknown) = (ClientIndex(3), ClientIndex(4));
        lottery.join(known, 7).unwrap();
        let refused = [
            (lottery.join(known, 9), PolicyError::AlreadyJoined(known)),
            (lottery.leave(unknown), PolicyError::NotJoined(unknown)),
            (
                lottery.set_tickets(unknown, 1),
                PolicyError::NotJoined(unknown),
            ),
            (lottery.take(unknown), PolicyError::NotJoined(unknown)),
            (
                lottery.charge(unknown, 1, 1),
                PolicyError::NotJoined(unknown),
            ),
            (lottery.charge(known, 1, 0), PolicyError::ZeroQuantum(known)),
            (
                lottery.join(ClientIndex(MAX_CLIENTS), 1),
                PolicyError::TooManyClients(ClientIndex(MAX_CLIENTS)),
            ),
            (
                lottery.take(ClientIndex(u32::MAX)),
                PolicyError::NotJoined(ClientIndex(u32::MAX)),
            ),
        ];
        for (result, error) in refused {
            assert_eq!(result, Err(error), "{name}");
        }
        lottery.forget(unknown);
        lottery.forget(ClientIndex(u32::MAX));
        assert_eq!((lottery.len(), lottery.total_tickets()), (1, 7), "{name}");
        assert_eq!(lottery.pick(), Some(known), "{name}");
    });
}

/// The table of seats is the one that all lotteries keep.
#[test]
fn the_last_index_is_usable() {
    let rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut lottery = ListLottery::new(ListOrder::Sorted, rng);
    let last = ClientIndex(MAX_CLIENTS - 1);
    lottery.join(last, 1).unwrap();
    assert_eq!(lottery.pick(), Some(last));
    let past = ClientIndex(MAX_CLIENTS);
    assert_eq!(
        lottery.join(past, 1),
        Err(PolicyError::TooManyClients(past))
    );
}
