use prorata_sim::trace::*;
use prorata_sim::*;
use std::path::Path;
#[test]
fn quick() {
    for f in [
        "three-two-one",
        "currencies-insulate",
        "server",
        "mutex",
        "monte-carlo",
        "mixed",
    ] {
        let s = match Scenario::read(Path::new(&format!(
            "{}/../../scenarios/{f}.toml",
            env!("CARGO_MANIFEST_DIR")
        ))) {
            Ok(s) => s,
            Err(e) => {
                println!("{e}");
                panic!()
            }
        };
        let mut sim = Simulation::watched(&s, 1, Fingerprint::default()).unwrap();
        let t = std::time::Instant::now();
        let mut n = 0u64;
        while sim.step().unwrap() {
            n += 1;
            if n.is_multiple_of(7) {
                sim.machine().check().unwrap();
            }
        }
        println!(
            "{f} {:?} {:?} {:x}",
            t.elapsed(),
            sim.machine().counts(),
            sim.observer().value()
        );
        for c in 0..sim.machine().client_count() {
            println!(
                "  {} {:?}",
                sim.machine().client_name(c),
                sim.machine().dispatcher().usage(sim.machine().client_id(c))
            );
        }
    }
}
