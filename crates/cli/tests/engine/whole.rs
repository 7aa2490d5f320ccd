//! The whole machine under the scheduler: control groups are currencies.

use std::array;

use libtest_mimic::Failed;

use crate::quarantine;
use crate::script::{GROUP, SECONDS, Shown, by_tickets, check, json, part, play_whole};

/// Control groups as a service manager makes them, and their used time. One command
/// reads all of them, because several would wait for one another's turns.
pub const SERVICES: &str = r#"
echo +cpu > /sys/fs/cgroup/cgroup.subtree_control
echo +cpu > $GROUP/cgroup.subtree_control
# Name, weight, number of processes.
service() {
    mkdir "$GROUP/$1"
    echo "$2" > "$GROUP/$1/cpu.weight"
    for _ in $(seq "$3"); do
        sh -c 'echo 0 > "$0/cgroup.procs"; exec sha256sum /dev/zero' "$GROUP/$1" >/dev/null &
    done
}
used() {
    for group in $GROUP/[abc] /sys/fs/cgroup; do
        while read -r key value; do [ "$key" != usage_usec ] || echo "$value"; done < $group/cpu.stat
    done
}
"#;

/// CPU time between two readings, in nanoseconds, of a number of groups; the last is the
/// whole machine.
fn used<const GROUPS: usize>(
    shown: &Shown,
    [before, after]: [&str; 2],
) -> Result<[f64; GROUPS], Failed> {
    let times = |name| -> Result<Vec<f64>, Failed> {
        let lines = part(shown, name)?.lines();
        Ok(lines.map(str::parse).collect::<Result<_, _>>()?)
    };
    let (before, after) = (times(before)?, times(after)?);
    let are_there = before.len() == GROUPS && after.len() == GROUPS;
    check(are_there, "services", shown)?;
    Ok(array::from_fn(|group| (after[group] - before[group]) * 1e3))
}

fn check_shares(shown: &Shown, looks: [&str; 2], weights: [f64; 2]) -> Result<(), Failed> {
    let [a, b, _machine] = used(shown, looks)?;
    let pairs = [(a, weights[0]), (b, weights[1])];
    check(by_tickets(&pairs), looks[0], shown)
}

/// Two services share by weight, for any number of processes, and a change of weight
/// takes effect.
pub fn services() -> Result<(), Failed> {
    let script = format!(
        "GROUP={GROUP}
         {SERVICES}
         service a 300 1; service b 100 3; sleep 1
         show before used; sleep {SECONDS}; show after used
         echo 300 > $GROUP/b/cpu.weight; sleep 0.2
         show equal used; sleep {SECONDS}; show later used
         show status prorata status --json
         prorata stop; until_unloaded"
    );
    let shown = play_whole("", &script)?;
    check_shares(&shown, ["before", "after"], [3.0, 1.0])?;
    check_shares(&shown, ["equal", "later"], [1.0, 1.0])?;
    let status = json(&shown, "status")?;
    check(status["mechanism"] == "all", "mechanism", &shown)?;
    check(status["advice"].is_null(), "advice", &shown)?;
    let boost = &status["hybrid"]["ticket-boost"];
    check(*boost == true, "early tasks", &shown)?;
    check(status["trouble"].is_null(), "trouble", &shown)
}

/// A client beside services: its user has as many base tickets as all groups together.
pub fn clients() -> Result<(), Failed> {
    let script = format!(
        "GROUP={GROUP}
         {SERVICES}
         service a 100 2; service b 100 1
         mkdir $GROUP/c
         prorata run -t 100 -n client -- sh -c 'echo 0 > \"$0/cgroup.procs\"
             exec sha256sum /dev/zero' $GROUP/c >/dev/null &
         until_there 1; sleep 1
         show before used; sleep {SECONDS}; show after used
         prorata stop; until_unloaded"
    );
    let shown = play_whole("", &script)?;
    let [a, b, client, machine] = used(&shown, ["before", "after"])?;
    let pairs = [(machine - client, 1.0), (client, 1.0)];
    let near = by_tickets(&pairs) || quarantine::CLIENT_BESIDE_SERVICES.holds(&pairs);
    check(near, "the client's share", &shown)?;
    check(by_tickets(&[(a, 1.0), (b, 1.0)]), "services", &shown)
}
