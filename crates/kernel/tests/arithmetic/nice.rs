//! Nice values of clients (`bpf/nice.h`) beside the core's (`core/src/hybrid/nice.rs`).

use prorata_core::hybrid::nice::niced;
use prorata_core::hybrid::{Nice, NiceLaw, NiceMean};
use prorata_core::ledger::Value;
use rand_core::Rng as _;

use crate::native::Graph;
use crate::{amount, numbers};

const CLIENTS: usize = 20;
const MOST_TASKS: usize = 6;

/// Random histories: tasks at nice 0 or elsewhere join clients with random amounts, and leave them.
#[test]
fn values_and_their_sum_are_the_core_s() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut random = numbers(seed);
        let mut graph = Graph::new();
        let amounts: Vec<u64> = (0..CLIENTS).map(|_| amount(&mut random, 24)).collect();
        let mut tasks: Vec<Vec<u32>> = vec![Vec::new(); CLIENTS];
        for (node, amount) in (1..).zip(&amounts) {
            graph.fund(node, &[(0, *amount)]);
        }
        for _ in 0..300 {
            let client = (random.next_u64() % CLIENTS as u64) as usize;
            let node = client as u32 + 1;
            let own = &mut tasks[client];
            let leaves = own.len() == MOST_TASKS || random.next_u64().is_multiple_of(2);
            if leaves && !own.is_empty() {
                let place = (random.next_u64() % own.len() as u64) as usize;
                let weight = own.swap_remove(place);
                graph.hold(node, -i64::from(weight));
                graph.count_nice(node, weight, -1);
            } else if !leaves {
                let weight = weight(random.next_u64());
                own.push(weight);
                graph.hold(node, i64::from(weight));
                graph.count_nice(node, weight, 1);
            }
            check(&mut graph, &amounts, &tasks);
        }
    }
}

/// Half of all tasks are at nice 0.
fn weight(bits: u64) -> u32 {
    let nice = match bits % 2 {
        0 => 0,
        _ => (bits / 2 % 40) as i8 - 20,
    };
    NiceLaw::Linux.factor(Nice::new(nice).expect("it is in range"))
}

fn check(graph: &mut Graph, amounts: &[u64], tasks: &[Vec<u32>]) {
    let mut all = 0.0;
    for ((node, amount), tasks) in (1..).zip(amounts).zip(tasks) {
        let mut mean = NiceMean::default();
        tasks.iter().for_each(|weight| mean.add(*weight));
        let Some(factor) = mean.factor() else {
            continue;
        };
        let value = Value(u128::from(*amount) << Value::FRACTION_BITS);
        let core = niced(value, factor).to_f64();
        let ours = graph.niced_value(node).to_f64();
        assert!(
            (ours - core).abs() <= core * 2f64.powi(-25),
            "client {node} of {amount}, {tasks:?}: {ours} for {core}"
        );
        all += core;
    }
    let ours = graph.all_worth().to_f64();
    let rounding = CLIENTS as f64 * 2f64.powi(-15) + all * 2f64.powi(-25);
    assert!((ours - all).abs() <= rounding, "{ours} for {all}");
}
