//! DSS and PLS decide the same (2001, 3), and MQ what DSS would (2001, 4).

use proptest::prelude::*;
use prorata_core::run_queue::{Comparison, Goodness, Layout, Pass};

use super::machine::{Machine, Nature, WITHOUT_MM, events, natures};
use super::reference::compare_decision;
use super::seeded;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 400,
        ..seeded(2001)
    }
}

fn layouts() -> [Layout; 6] {
    [
        Layout::GlobalList,
        Layout::PriorityLevels,
        Layout::MultiQueue(Comparison::Scan),
        Layout::MultiQueue(Comparison::Tournament),
        Layout::Pools(vec![0, 1, 1, 0], Comparison::Scan),
        Layout::Pools(vec![0, 1, 2, 3], Comparison::Tournament),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn levels_pick_whom_the_list_picks(natures in natures(true), events in events()) {
        let mut list = Machine::new(WITHOUT_MM, &Layout::GlobalList, &natures);
        let mut levels = Machine::new(WITHOUT_MM, &Layout::PriorityLevels, &natures);
        for event in events {
            let [by_list, by_levels] = [&mut list, &mut levels].map(|m| m.happen(event));
            prop_assert_eq!(format!("{by_list:?}"), format!("{by_levels:?}"));
        }
    }

    #[test]
    fn so_they_do_where_no_two_share_an_address_space(
        mut natures in natures(true),
        events in events(),
    ) {
        for (nature, mm) in natures.iter_mut().zip(100..) {
            let (.., own, _): &mut Nature = nature;
            *own = mm;
        }
        let mut list = Machine::new(Goodness::X86, &Layout::GlobalList, &natures);
        let mut levels = Machine::new(Goodness::X86, &Layout::PriorityLevels, &natures);
        for event in events {
            let [by_list, by_levels] = [&mut list, &mut levels].map(|m| m.happen(event));
            prop_assert_eq!(format!("{by_list:?}"), format!("{by_levels:?}"));
        }
    }

    #[test]
    fn levels_pick_whom_the_list_picks_by_pass(natures in natures(true), events in events()) {
        let pass = || Pass::new(1000).unwrap();
        let mut list = Machine::new(pass(), &Layout::GlobalList, &natures);
        let mut levels = Machine::new(pass(), &Layout::PriorityLevels, &natures);
        for event in events {
            let [by_list, by_levels] = [&mut list, &mut levels].map(|m| m.happen(event));
            prop_assert_eq!(format!("{by_list:?}"), format!("{by_levels:?}"));
        }
    }

    #[test]
    fn every_layout_decides_by_goodness(natures in natures(true), events in events()) {
        for layout in layouts() {
            let mut machine = Machine::new(WITHOUT_MM, &layout, &natures);
            for &event in &events {
                compare_decision(&mut machine, event).unwrap();
                machine.check();
            }
        }
    }

    #[test]
    fn nobody_is_lost_where_locks_are_held(
        natures in natures(true),
        events in events(),
        grants in prop::collection::vec(any::<bool>(), 1..40),
    ) {
        for layout in layouts() {
            let mut machine = Machine::new(Goodness::X86, &layout, &natures);
            // Whoever holds a lock lets it go some time.
            machine.grants = [&grants[..], &[true]].concat();
            for &event in &events {
                machine.happen(event);
                machine.check();
            }
        }
    }
}
