use std::time::Instant;
fn main() {
    let all = std::env::args().any(|a| a == "--all");
    let only: Option<String> = std::env::var("ONLY").ok();
    for name in std::env::args().skip(1).filter(|a| a != "--all") {
        for figure in prorata_reproduce::find(&[name.clone()]).expect("found") {
            let began = Instant::now();
            let settings = prorata_reproduce::Settings {
                engine: prorata_reproduce::Engine::Sim,
                full: false,
            };
            match prorata_reproduce::reproduce(&figure, settings, &mut ()) {
                Ok(r) => {
                    let ok = r.metrics.iter().filter(|m| m.ok).count();
                    println!(
                        "## {} {:.1}s ok {ok} of {}",
                        r.id,
                        began.elapsed().as_secs_f64(),
                        r.metrics.len()
                    );
                    if all {
                        for m in &r.metrics {
                            if only.as_ref().is_none_or(|o| m.metric.contains(o.as_str())) {
                                println!(
                                    "{}\t{}\t{:.4}\t{}",
                                    m.metric,
                                    m.paper,
                                    m.measured,
                                    if m.ok { "ok" } else { "-" }
                                );
                            }
                        }
                    }
                }
                Err(e) => println!("{e}"),
            }
        }
    }
}
