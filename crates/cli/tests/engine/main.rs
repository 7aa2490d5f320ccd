//! The daemon with the kernel engine, through the command line. Needs a kernel with
//! sched_ext and without another scheduler: `make vm-test` runs it in micro-VMs.

mod endings;
mod given;
mod quarantine;
mod script;
mod traced;
mod whole;

use libtest_mimic::{Arguments, Failed, Trial};

const PRORATA: &str = env!("CARGO_BIN_EXE_prorata");

type Check = fn() -> Result<(), Failed>;

/// The checks of a short run.
const IN_SHORT: [(&str, Check); 5] = [
    ("shares_follow_tickets", given::shares),
    ("policies_are_put_back", given::policies),
    ("the_daemon_s_decisions_are_allowed", traced::allowed),
    ("services_share_by_weight", whole::services),
    ("a_killed_daemon_s_clients_come_back", endings::killed),
];

/// The other checks.
const CHECKS: [(&str, Check); 16] = [
    ("users_share_as_they_are_funded", given::users),
    (
        "programs_of_root_s_leave_users_clients",
        given::roots_programs,
    ),
    ("transfers_move_shares", given::transfers),
    ("settings_change_live", given::settings),
    ("clients_have_quanta_of_their_own", given::quanta),
    ("a_waking_client_need_not_wait", given::hybrid),
    ("ends_are_noticed", given::ends),
    ("what_cannot_be_is_refused", given::refusals),
    ("the_demo_shares_3_2_1", given::demo),
    ("the_daemon_s_decisions_are_traced", traced::traced),
    ("all_of_the_machine_s_are_allowed", traced::all_allowed),
    ("what_cannot_be_traced_is_refused", traced::refused),
    ("clients_share_with_services", whole::clients),
    ("an_administrator_s_unloading_is_told", endings::unloaded),
    ("after_a_stall_it_is_loaded_again", endings::stalled),
    (
        "all_of_the_machine_outlives_a_kill",
        endings::killed_with_all,
    ),
];

fn main() {
    let mut arguments = Arguments::from_args();
    // Only one scheduler can be loaded at a time.
    arguments.test_threads = Some(1);
    let is_short = std::env::var_os("SHORT_TESTS").is_some();
    let others = CHECKS.into_iter().filter(|_| !is_short);
    let checks = IN_SHORT.into_iter().chain(others);
    let trials = checks.map(|(name, check)| Trial::test(name, check));
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
