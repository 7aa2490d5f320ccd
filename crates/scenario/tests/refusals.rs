//! What is wrong in a scenario is refused with file, line and fix.

use std::path::Path;

use prorata_scenario::Scenario;

/// A line with a client, so that the rest of a text is what is wrong.
const CLIENT: &str = "[[client]]\nname = \"A\"\n";
const HEAD: &str = "title = \"t\"\nduration = \"1s\"\n";

fn message(text: &str) -> String {
    match Scenario::parse(Path::new("dir/test.toml"), text.to_owned()) {
        Ok(_) => panic!("not refused: {text}"),
        Err(error) => error.to_string(),
    }
}

/// Asserts where and how a scenario with this rest is refused: the line within
/// `rest`, from 1, and a part of the message.
fn assert_refused(rest: &str, line: usize, part: &str) {
    let text = format!("{HEAD}{CLIENT}{rest}");
    let message = message(&text);
    let place = format!("dir/test.toml:{}:", line + 4);
    assert!(message.starts_with(&place), "{rest:?}: {message}");
    assert!(message.contains(part), "{rest:?}: {message}");
}

#[test]
fn unknown_fields_and_variants_are_named() {
    assert_refused("ticket = 3\n", 1, "unknown field `ticket`");
    assert_refused("[machine]\ncpu = 3\n", 2, "unknown field `cpu`");
    assert_refused(
        "[machine]\npolicy = \"fair\"\n",
        2,
        "unknown variant `fair`",
    );
    assert_refused(
        "[program.p]\nsteps = [\n{ comput = \"1s\" }]\n",
        3,
        "unknown variant `comput`",
    );
    assert_refused(
        "[program.p]\nsteps = [{ compute = { exponental = \"1s\" } }]\n",
        2,
        "unknown variant `exponental`",
    );
    assert_refused(
        "[[at]]\ntime = \"1s\"\ndo = { begin = \"A\" }\n",
        3,
        "unknown variant `begin`",
    );
    assert_refused(
        "tickets = { random = { between = [1, 2], every = \"1s\", wild = 1 } }\n",
        1,
        "unknown field `wild`",
    );
}

#[test]
fn values_of_the_wrong_form_are_refused() {
    assert_refused(
        "start = \"10 parsecs\"\n",
        1,
        "write a number and one of ns, us, ms, s, min, h",
    );
    assert_refused("start = 10\n", 1, "a time in quotes");
    assert_refused("start = \"0.1ns\"\n", 1, "finer than a nanosecond");
    assert_refused("tickets = 0\n", 1, "from 1 to 4294967295");
    assert_refused("tickets = 4294967296\n", 1, "from 1 to 4294967295");
    assert_refused("tickets = \"100\"\n", 1, "such as 100.alice");
    assert_refused("tickets = true\n", 1, "tickets: a number");
    assert_refused("[machine\n", 1, "");
}

#[test]
fn unknown_names_are_refused_with_those_that_there_are() {
    assert_refused(
        "tickets = \"1.alice\"\n",
        1,
        "write a [[currency]] of that name",
    );
    assert_refused(
        "program = \"p\"\n",
        1,
        "there is no program \"p\": name one of compute",
    );
    assert_refused(
        "[program.p]\nsteps = [{ lock = \"m\" }]\n",
        2,
        "write a [mutex.NAME]",
    );
    assert_refused(
        "[mutex.n]\n[program.p]\nsteps = [{ lock = \"m\" }]\n",
        3,
        "name one of n",
    );
    assert_refused(
        "[program.p]\nsteps = [{ send = \"m\" }]\n",
        2,
        "write a [pipe.NAME]",
    );
    assert_refused(
        "[program.p]\nsteps = [{ wait = \"m\" }]\n",
        2,
        "let a program or an event signal it",
    );
    assert_refused(
        "[program.p]\nsteps = [{ call = \"m\" }]\n",
        2,
        "let a program serve it",
    );
    assert_refused(
        "[program.p]\nsteps = [{ fork = \"q\" }]\n",
        2,
        "name one of compute, p",
    );
    assert_refused(
        "[[at]]\ntime = \"1s\"\ndo = { stop = \"B\" }\n",
        3,
        "there is no client \"B\"",
    );
    assert_refused(
        "[[at]]\ntime = \"1s\"\ndo = { end-transfer = \"x\" }\n",
        3,
        "let an event begin it",
    );
    assert_refused(
        "[[at]]\ntime = \"1s\"\ndo = { set-tickets = { of = \"B\", tickets = 3 } }\n",
        3,
        "client or currency \"B\"",
    );
    assert_refused(
        "[[assert]]\nshare = { client = \"B\", is = 1.0, within = 0.1 }\n",
        2,
        "there is no client \"B\"",
    );
    assert_refused(
        "[measure]\npairs = [[\"A\", \"B\"]]\n",
        2,
        "there is no client \"B\"",
    );
}

#[test]
fn names_are_unique_and_short() {
    assert_refused("[[client]]\nname = \"A\"\n", 2, "choose another name");
    assert_refused("[[currency]]\nname = \"A\"\n", 2, "names two things");
    assert_refused("[[currency]]\nname = \"base\"\n", 2, "choose another name");
    assert_refused("[[client]]\nname = \"\"\n", 2, "is no name");
    assert_refused("[[client]]\nname = \"a b\"\n", 2, "is no name");
    let long = "n".repeat(49);
    assert_refused(
        &format!("[[client]]\nname = \"{long}\"\n"),
        2,
        "1 to 48 bytes",
    );
    let fits = format!("{HEAD}{CLIENT}[[client]]\nname = \"{}\"\n", "n".repeat(48));
    assert!(Scenario::parse(Path::new("t"), fits).is_ok());
}

#[test]
fn a_cycle_of_currencies_is_refused_by_name() {
    let cycle = "[[currency]]\nname = \"a\"\ntickets = [\"1.b\"]\n[[currency]]\nname = \"b\"\ntickets = [\"1.a\"]\n";
    assert_refused(cycle, 6, "b -> a -> b");
    assert_refused(
        "tickets = [\"1.base\", \"2.base\"]\n",
        1,
        "\"base\" names two things",
    );
}

#[test]
fn programs_that_make_no_sense_are_refused() {
    let steps = |steps: &str| format!("[mutex.m]\n[program.p]\nsteps = [{steps}]\n");
    for (text, part) in [
        ("", "no steps"),
        ("{ loop = { steps = [\"yield\"] } }", "takes no time"),
        (
            "{ loop = { times = 0, steps = [\"yield\"] } }",
            "times is 0",
        ),
        ("{ unlock = \"m\" }", "lock it first"),
        ("{ lock = \"m\" }, { lock = \"m\" }", "unlock it before"),
        ("{ lock = \"m\" }", "ends with a mutex locked"),
        (
            "{ loop = { steps = [{ lock = \"m\" }] } }",
            "as they found them",
        ),
        (
            "{ compute = { uniform = [\"2s\", \"1s\"] } }",
            "the shortest time is 2s",
        ),
        ("{ compute = { trace = [] } }", "the length of a trace is 0"),
        (
            "{ serve = { service = \"s\", steps = [{ serve = { service = \"s\", steps = [\"exit\"] } }] } }",
            "one call at a time",
        ),
    ] {
        assert_refused(&steps(text), 3, part);
    }
}

#[test]
fn limits_are_kept() {
    for (cpus, fits) in [(0, false), (1, true), (4096, true), (4097, false)] {
        let text = format!("{HEAD}{CLIENT}[machine]\ncpus = {cpus}\n");
        assert_eq!(
            Scenario::parse(Path::new("t"), text).is_ok(),
            fits,
            "{cpus}"
        );
    }
    for (count, fits) in [(0, false), (1, true), ((1 << 20) + 1, false)] {
        let text = format!("{HEAD}{CLIENT}count = {count}\n");
        assert_eq!(
            Scenario::parse(Path::new("t"), text).is_ok(),
            fits,
            "{count}"
        );
    }
    for (quantum, fits) in [
        ("999ns", false),
        ("1us", true),
        ("1h", true),
        ("3601s", false),
    ] {
        let text = format!("{HEAD}{CLIENT}[machine]\nquantum = \"{quantum}\"\n");
        assert_eq!(
            Scenario::parse(Path::new("t"), text).is_ok(),
            fits,
            "{quantum}"
        );
    }
    for (steps, fits) in [(4096, true), (4097, false)] {
        let step = "{ compute = \"1ms\" },".repeat(steps);
        let text = format!("{HEAD}{CLIENT}[program.p]\nsteps = [{step}]\n");
        assert_eq!(
            Scenario::parse(Path::new("t"), text).is_ok(),
            fits,
            "{steps}"
        );
    }
    for (capacity, fits) in [
        (0, false),
        (1, true),
        (1 << 24, true),
        ((1 << 24) + 1, false),
    ] {
        let text = format!("{HEAD}{CLIENT}[pipe.p]\ncapacity = {capacity}\n");
        assert_eq!(
            Scenario::parse(Path::new("t"), text).is_ok(),
            fits,
            "{capacity}"
        );
    }
    for (loops, fits) in [(64, true), (65, false)] {
        let steps = "{ loop = { times = 2, steps = [{ compute = \"1ms\" }] } },".repeat(loops);
        let text = format!("{HEAD}{CLIENT}[program.p]\nsteps = [{steps}]\n");
        assert_eq!(
            Scenario::parse(Path::new("t"), text).is_ok(),
            fits,
            "{loops}"
        );
    }
}

#[test]
fn a_missing_file_and_a_missing_trace_are_named() {
    let error = Scenario::read(Path::new("no/such.toml")).expect_err("there is none");
    assert!(error.to_string().starts_with("no/such.toml: "), "{error}");
    let text =
        format!("{HEAD}{CLIENT}[program.p]\nsteps = [{{ compute = {{ trace = \"no.csv\" }} }}]\n");
    let error = message(&text);
    assert!(error.starts_with("dir/no.csv: "), "{error}");
}

#[test]
fn a_trace_file_is_read_and_its_errors_have_lines() {
    let directory = tempfile::tempdir().expect("a directory");
    let scenario = directory.path().join("s.toml");
    let text =
        format!("{HEAD}{CLIENT}[program.p]\nsteps = [{{ compute = {{ trace = \"t.csv\" }} }}]\n");
    std::fs::write(&scenario, text).expect("written");
    let trace = directory.path().join("t.csv");
    std::fs::write(&trace, "# time, note\n10ms, first\n\n20ms\n").expect("written");
    assert!(Scenario::read(&scenario).is_ok());
    std::fs::write(&trace, "10ms\nsoon\n").expect("written");
    let error = Scenario::read(&scenario).expect_err("no time").to_string();
    assert!(
        error.contains("t.csv:2:1: \"soon\" is not a time"),
        "{error}"
    );
}

#[test]
fn nobody_has_the_name_of_a_copy() {
    let copies =
        |name: &str, count: u32| format!("[[client]]\nname = \"{name}\"\ncount = {count}\n");
    let single = |name: &str| format!("[[client]]\nname = \"{name}\"\n");
    for (rest, line, twice) in [
        (copies("x", 3) + &single("x3"), 5, Some("x3")),
        (single("x3") + &copies("x", 3), 2, Some("x3")),
        (copies("x", 3) + &single("x4"), 0, None),
        (copies("x", 3) + &single("x03"), 0, None),
        (copies("x", 3) + &single("x0"), 0, None),
        (copies("x", 11) + &copies("x1", 2), 5, Some("x11")),
        (copies("x", 10) + &copies("x1", 2), 0, None),
        (copies("x", 2) + &copies("x", 2), 5, Some("x")),
    ] {
        match twice {
            Some(name) => assert_refused(&rest, line, &format!("\"{name}\" names two things")),
            None => {
                let text = format!("{HEAD}{CLIENT}{rest}");
                Scenario::parse(Path::new("test.toml"), text).expect("names differ");
            }
        }
    }
}

#[test]
fn copies_of_currencies_are_some_and_have_names_of_their_own() {
    let copies =
        |name: &str, count: &str| format!("[[currency]]\nname = \"{name}\"\ncount = {count}\n");
    assert_refused(&copies("u", "0"), 3, "it must be 1 to 65536");
    assert_refused(&copies("u", "65537"), 3, "it must be 1 to 65536");
    let twice = format!("{0}{0}", copies("u", "2"));
    assert_refused(&twice, 5, "u1");
    let one_of_them = format!("{}[[currency]]\nname = \"u2\"\n", copies("u", "2"));
    assert_refused(&one_of_them, 5, "u2");
    let no_copy = format!("tickets = \"1.u3\"\n{}", copies("u", "2"));
    assert_refused(&no_copy, 1, "there is no currency \"u3\"");
}

#[test]
fn the_cpus_of_a_client_are_some_of_the_machines() {
    let cpus = |list: &str, rest: &str| format!("cpus = [{list}]\n[machine]\ncpus = 2\n{rest}");
    assert_refused(&cpus("", ""), 1, "name at least one, or leave cpus out");
    assert_refused(
        &cpus("1, 2", ""),
        1,
        "the number of a CPU is 2: it must be 0 to 1",
    );
    let pools = "pools = [{ name = \"a\", cpus = 2 }]\n";
    assert_refused(&cpus("1", pools), 1, "say pool instead");
    let text = format!("{HEAD}{CLIENT}{}", cpus("0, 1", ""));
    Scenario::parse(Path::new("t"), text).expect("the machine has these CPUs");
}

#[test]
fn pools_make_up_the_machine() {
    let pools = |cpus: u32, pools: &str| format!("[machine]\ncpus = {cpus}\npools = [{pools}]\n");
    let (a, b) = ("{ name = \"a\", cpus = 2 }", "{ name = \"b\", cpus = 3 }");
    assert_refused(
        &pools(4, &format!("{a}, {b}")),
        3,
        "the pools have 5 CPUs together, the machine has 4: let `cpus` be 5",
    );
    assert_refused(&pools(4, &format!("{a}, {a}")), 3, "names two things");
    assert_refused(&pools(2, "{ name = \"a b\", cpus = 2 }"), 3, "is no name");
    assert_refused(&pools(1, "{ name = \"a\", cpus = 0 }"), 3, "cpus is 0");
    assert_refused(&pools(1, "{ name = \"a\" }"), 3, "missing field `cpus`");
    assert_refused(
        &format!("pool = \"a\"\n{}", pools(3, b)),
        1,
        "there is no pool \"a\": name one of b",
    );
    assert_refused("pool = \"a\"\n", 1, "write it into machine.pools");
    let to = "[[at]]\ntime = \"1ms\"\ndo = { move = { client = \"A\", to = \"c\" } }\n";
    let two = pools(5, &format!("{a}, {b}"));
    assert_refused(&format!("{two}{to}"), 6, "name one of a, b");
    let unknown = "[[at]]\ntime = \"1ms\"\ndo = { move = { client = \"Z\", to = \"a\" } }\n";
    assert_refused(&format!("{two}{unknown}"), 6, "there is no client \"Z\"");
}

#[test]
fn nice_values_end_at_twenty() {
    for nice in [-20, 19, 20] {
        let text = format!("{HEAD}{CLIENT}nice = {nice}\n");
        assert!(Scenario::parse(Path::new("dir/test.toml"), text).is_ok());
    }
    for nice in [-21, 21] {
        assert_refused(&format!("nice = {nice}\n"), 1, "it must be -20 to 20");
        assert_refused(
            &format!(
                "[[at]]\ntime = \"1s\"\ndo = {{ set-nice = {{ of = \"A\", nice = {nice} }} }}\n"
            ),
            3,
            "it must be -20 to 20",
        );
    }
    assert_refused("nice = 200\n", 1, "200");
    assert_refused(
        "[[at]]\ntime = \"1s\"\ndo = { set-nice = { of = \"C\", nice = 1 } }\n",
        3,
        "there is no client \"C\"",
    );
}

#[test]
fn boosts_multiply_tickets_of_some_policies_alone() {
    let machine = |policy: &str| {
        format!("[machine]\npolicy = \"{policy}\"\nhybrid = {{ as-printed = true }}\n")
    };
    for policy in [
        "list-lottery",
        "tree-lottery",
        "class-lottery",
        "decay-usage",
    ] {
        let text = format!("{HEAD}{CLIENT}{}", machine(policy));
        assert!(Scenario::parse(Path::new("dir/test.toml"), text).is_ok());
    }
    for policy in ["stride", "lottery", "eevdf"] {
        assert_refused(&machine(policy), 2, "choose one of them, or leave it out");
    }
    let later = "[[at]]\ntime = \"1s\"\ndo = { policy = \"stride\" }\n";
    let text = format!("{}{later}", machine("list-lottery"));
    assert_refused(&text, 6, "choose one of them");
}

#[test]
fn a_loop_with_a_time_has_nothing_else_and_takes_time() {
    let program = |keys: &str, steps: &str| {
        format!("[program.p]\nsteps = [{{ loop = {{ {keys}, steps = [{steps}] }} }}]\n")
    };
    let compute = "{ compute = \"1ms\" }";
    for other in ["times = 2", "chance = 0.5"] {
        let keys = format!("until = \"1s\", {other}");
        assert_refused(&program(&keys, compute), 2, "leave one of them out");
    }
    assert_refused(&program("until = \"1s\"", "\"yield\""), 2, "takes no time");
}
