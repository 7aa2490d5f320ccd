//! The scheduler on real tasks. Needs a kernel with sched_ext that is ours
//! alone: `make vm-test` runs this in machines.

mod boundaries;
mod bounds;
mod cgroups;
mod early;
mod economy;
mod histories;
mod hogs;
mod limits;
mod loading;
mod next;
mod nice;
mod observe;
mod processors;
mod replay;
mod sharing;
mod slots;
mod tasks;
mod whole;
mod world;

use libtest_mimic::{Arguments, Failed, Trial};

type Check = fn() -> Result<(), Failed>;

/// Checks of slots, for any number of CPUs.
const SLOTS: [(&str, Check); 9] = [
    ("claims_get_their_slots", slots::claims),
    (
        "slots_are_kept_without_the_timer",
        boundaries::without_timer,
    ),
    ("slots_within_tickets_move_no_shares", slots::insulation),
    (
        "a_client_that_frees_its_slots_is_next_within_a_period",
        slots::freed,
    ),
    ("a_gift_of_slots_costs_no_tickets", slots::gifts),
    ("a_limit_holds_in_slots", slots::limited),
    ("a_schedulee_that_wakes_in_its_slot_is_back", slots::wakes),
    ("slots_end_with_schedulee_and_table", slots::ends),
    ("words_and_picks_of_slots_are_the_table_s", slots::replayed),
];

/// In these, tasks wait for most of a minute.
const LONG_SLOTS: [(&str, Check); 1] = [("full_tables_of_slots_starve_no_task", slots::full)];

/// The same for several CPUs.
const SLOTS_ON_SEVERAL: [(&str, Check); 1] = [(
    "a_taken_cpu_holds_up_no_table",
    boundaries::beside_a_higher_class,
)];

/// Checks for any number of CPUs, which a short run has too. Most reckon with one CPU.
const IN_SHORT: [(&str, Check); 10] = [
    ("loading_is_little_work", loading::verifier),
    ("three_hogs_share_3_2_1", sharing::three_hogs),
    ("changes_take_effect_at_once", economy::changes),
    ("nested_control_groups", cgroups::nested),
    ("every_pick_is_the_core_s", replay::picks),
    ("every_early_pick_is_allowed", replay::early_picks),
    ("stopped_and_continued", tasks::stop_and_continue),
    ("a_limited_client_gets_its_limit_alone", limits::alone),
    (
        "every_pick_beside_limits_is_the_core_s",
        replay::limited_picks,
    ),
    ("kernel_threads_get_their_turns", whole::kernel_threads),
];

/// The same for several CPUs.
const LIMITED_ALONE: [(&str, Check); 1] =
    [("a_limited_client_gets_its_limit_alone", limits::alone)];

/// Checks of nice values, for any number of CPUs.
const NICE: [(&str, Check); 2] = [
    ("clients_follow_renice", nice::renices),
    ("every_pick_beside_nice_clients_is_allowed", nice::picks),
];

/// More of them, for one CPU.
const NICE_ON_ONE: [(&str, Check); 4] = [
    ("a_user_s_nice_hog_gets_fifteen_to_a_thousand", nice::users),
    ("nice_values_bound_clients", nice::bounds),
    (
        "a_nice_task_takes_nothing_from_its_client",
        nice::several_tasks,
    ),
    ("without_the_mechanism_clients_ignore_nice", nice::off),
];

/// Checks of limits, for any number of CPUs.
const LIMITS: [(&str, Check); 10] = [
    (
        "a_limited_client_leaves_the_rest_to_others",
        limits::beside_hogs,
    ),
    (
        "a_limit_holds_for_all_tasks_together",
        limits::tasks_together,
    ),
    ("a_limit_may_exceed_a_cpu", limits::more_than_a_cpu),
    ("a_lottery_keeps_limits", limits::lottery),
    (
        "a_limit_changes_during_a_pause",
        limits::changes_during_a_pause,
    ),
    (
        "a_client_can_be_ended_while_its_limit_stops_it",
        limits::ends_during_a_pause,
    ),
    (
        "limited_tasks_run_on_without_the_scheduler",
        limits::unloaded_during_a_pause,
    ),
    ("no_task_starves_under_a_limit", limits::no_starvation),
    (
        "no_task_of_a_crowd_starves_under_a_limit",
        limits::no_starvation_of_a_crowd,
    ),
    ("limits_of_limits", limits::refusals),
];

/// More checks for any number of CPUs. Most reckon with one CPU.
const CHECKS: [(&str, Check); 44] = [
    ("an_observer_sees_naps", observe::naps),
    ("lottery_and_stride_change_places_live", sharing::lottery),
    ("clients_may_have_quanta_of_their_own", sharing::own_quanta),
    ("limits_of_quanta", sharing::limits_of_quanta),
    ("short_bursts_are_compensated", sharing::compensation),
    (
        "a_waking_task_may_end_a_quantum",
        sharing::abbreviated_quanta,
    ),
    ("early_tasks_change_no_shares", early::hogs_share),
    (
        "a_sleeper_runs_at_once_inside_its_client",
        early::inside_a_client,
    ),
    ("sleeping_gains_nothing", early::adversaries),
    (
        "no_task_starves_beside_its_own_client_s_early_ones",
        early::waits_beside_own_client,
    ),
    (
        "no_task_starves_beside_an_early_client",
        early::waits_beside_early_client,
    ),
    (
        "a_sleeper_runs_at_once_inside_its_control_group",
        early::inside_a_group,
    ),
    (
        "sleeping_gains_a_control_group_nothing",
        early::adversaries_in_groups,
    ),
    (
        "sleeping_gains_a_task_nothing_inside_its_control_group",
        early::adversaries_inside_a_group,
    ),
    (
        "taking_turns_gains_a_control_group_nothing",
        early::alternating_adversaries,
    ),
    ("short_wakes_do_not_wait", early::short_wakes),
    ("short_processes_are_not_early", early::relay),
    ("sleeping_sheds_no_debt", sharing::sleeping_sheds_no_debt),
    ("short_processes_get_their_share", sharing::short_processes),
    ("figure_3_of_1994", economy::figure_3),
    (
        "a_blocked_client_s_tickets_go_to_siblings",
        economy::a_blocked_client_s_tickets,
    ),
    ("the_deepest_chain_counts_in_full", economy::depth),
    ("amounts_are_conserved", economy::conservation),
    ("programs_of_a_group_share_its_part", cgroups::programs),
    ("a_herd_takes_no_more_than_its_half", cgroups::herd),
    ("thousands_of_control_groups", cgroups::many),
    ("nice_values_are_tickets", cgroups::nice),
    (
        "every_pick_in_abbreviated_quanta_is_the_core_s",
        replay::picks_in_abbreviated_quanta,
    ),
    (
        "every_early_pick_of_random_histories_is_allowed",
        histories::early_picks,
    ),
    (
        "no_task_of_a_whole_machine_starves_in_random_histories",
        histories::whole,
    ),
    (
        "every_pick_from_the_midst_is_the_core_s",
        replay::picks_from_the_midst,
    ),
    (
        "a_yielding_task_gets_no_more_than_its_share",
        next::yielding_tasks,
    ),
    (
        "a_line_moves_although_a_task_wakes_before_each_turn_ends",
        next::a_task_wakes_before_each_turn_ends,
    ),
    ("no_weight_is_too_small", bounds::weights),
    ("a_storm_of_processes_is_one_client", bounds::storm),
    (
        "a_process_that_executes_a_program_stays_in_its_client",
        tasks::exec,
    ),
    ("a_debugger_comes_and_goes", tasks::trace),
    ("real_time_tasks_leave_shares_of_the_rest", tasks::real_time),
    ("no_task_waits_much_longer_than_its_share", tasks::waits),
    ("ten_thousand_tasks_are_one_client", tasks::crowd),
    (
        "removed_control_groups_leave_nothing",
        whole::removed_groups,
    ),
    ("a_storm_in_a_control_group", whole::storm),
    (
        "a_client_shares_with_groups_that_nap",
        whole::client_beside_groups,
    ),
    ("naps_save_nothing_up", whole::naps_save_nothing_up),
];

/// Checks for three CPUs, which a short run has too.
const IN_SHORT_ON_THREE: [(&str, Check); 3] = [
    (
        "infeasible_weights_in_queues_per_cpu",
        processors::infeasible_in_queues_per_cpu,
    ),
    ("tasks_stay_where_they_are_bound", processors::affinity),
    (
        "every_pick_from_queues_per_cpu_is_of_the_least_pass",
        replay::picks_from_queues_per_cpu,
    ),
];

/// More checks for three CPUs.
const CHECKS_ON_THREE: [(&str, Check); 15] = [
    (
        "infeasible_weights_in_one_queue",
        processors::infeasible_in_one_queue,
    ),
    (
        "a_newcomer_on_a_full_cpu_gets_its_share",
        processors::newcomer,
    ),
    (
        "a_task_bound_to_some_cpus_gets_its_share",
        processors::roamers,
    ),
    ("cpus_come_and_go", processors::hotplug),
    (
        "every_pick_from_one_queue_is_of_the_least_pass",
        replay::picks_from_one_queue,
    ),
    (
        "every_pick_in_abbreviated_quanta_is_of_the_least_pass",
        replay::picks_in_abbreviated_quanta_from_queues_per_cpu,
    ),
    (
        "a_waking_task_may_end_a_quantum_on_three_cpus",
        sharing::abbreviated_quanta_on_three,
    ),
    ("early_tasks_on_three_cpus", early::on_three),
    (
        "a_sleeper_runs_at_once_inside_its_control_group",
        early::inside_a_group,
    ),
    (
        "sleeping_gains_a_control_group_nothing",
        early::adversaries_in_groups,
    ),
    (
        "sleeping_gains_a_task_nothing_inside_its_control_group",
        early::adversaries_inside_a_group,
    ),
    (
        "taking_turns_gains_a_control_group_nothing",
        early::alternating_adversaries,
    ),
    (
        "every_pick_beside_early_tasks_is_of_the_least_pass",
        replay::picks_beside_early_tasks,
    ),
    ("bound_elsewhere_again_and_again", tasks::affinity_changes),
    ("bound_tasks_of_control_groups", whole::bound_tasks),
];

const SLOTS_ON_THREE: [(&str, Check); 1] = [("slots_come_back_with_their_cpu", slots::hotplug)];

/// Checks for four CPUs in two packages.
const CHECKS_ON_FOUR: [(&str, Check); 2] = [
    ("cpus_with_a_cache_share_a_queue", processors::caches),
    (
        "shares_over_two_caches_are_those_of_one_queue",
        processors::shares_over_caches,
    ),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == hogs::WORKER) {
        return hogs::work(&arguments[1..]);
    }
    let mut arguments = Arguments::from_args();
    // There is one scheduler at a time.
    arguments.test_threads = Some(1);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let is_short = std::env::var_os("SHORT_TESTS").is_some();
    let checks: &[&[(&str, Check)]] = match cpus {
        3 if is_short => &[
            &IN_SHORT_ON_THREE,
            &LIMITED_ALONE,
            &SLOTS,
            &SLOTS_ON_SEVERAL,
        ],
        2 => &[&LIMITED_ALONE, &LIMITS, &NICE, &SLOTS, &LONG_SLOTS],
        3 => &[
            &IN_SHORT_ON_THREE,
            &CHECKS_ON_THREE,
            &LIMITED_ALONE,
            &LIMITS,
            &NICE,
            &SLOTS,
            &LONG_SLOTS,
            &SLOTS_ON_SEVERAL,
            &SLOTS_ON_THREE,
        ],
        4 => &[&CHECKS_ON_FOUR],
        _ if is_short => &[&IN_SHORT, &SLOTS],
        _ => &[
            &IN_SHORT,
            &CHECKS,
            &LIMITS,
            &NICE,
            &NICE_ON_ONE,
            &SLOTS,
            &LONG_SLOTS,
        ],
    };
    let checks = checks.iter().copied().flatten();
    let trials = checks.map(|&(name, check)| Trial::test(name, check));
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
