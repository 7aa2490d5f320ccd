//! What is wrong in a timetable and its claims is refused with line and fix.

use std::path::Path;

use prorata_scenario::Scenario;

const HEAD: &str = "title = \"t\"\nduration = \"1s\"\n[[client]]\nname = \"A\"\n";

/// Asserts where and how a scenario with this rest is refused: the line within `rest`, from 1, and
/// a part of the message.
fn assert_refused(rest: &str, line: usize, part: &str) {
    let message = match Scenario::parse(Path::new("test.toml"), format!("{HEAD}{rest}")) {
        Ok(_) => panic!("not refused: {rest}"),
        Err(error) => error.to_string(),
    };
    let place = format!("test.toml:{}:", line + 4);
    assert!(message.starts_with(&place), "{rest:?}: {message}");
    assert!(message.contains(part), "{rest:?}: {message}");
}

#[test]
fn claims_without_a_timetable_are_refused() {
    let missing = "there is no timetable: write [slots]";
    assert_refused("[[claim]]\nby = \"A\"\n", 1, missing);
    let at = "[[at]]\ntime = \"1s\"\n";
    for action in [
        "claim = { by = \"A\" }",
        "free = { by = \"A\" }",
        "set-tokens = { of = \"A\", level = \"hard\", count = 1 }",
        "donate = { from = \"A\", to = \"A\", level = \"hard\", count = 1 }",
        "reserve = { slots = 1, of = 10 }",
    ] {
        assert_refused(&format!("{at}do = {{ {action} }}\n"), 3, missing);
    }
    for assertion in [
        "slot-lateness = { client = \"A\", percentile = 99, at-most = \"1ms\" }",
        "missed = { client = \"A\", at-most = 1 }",
        "gang-skew = { client = \"A\", at-most = \"1ms\" }",
        "blackout = { client = \"A\", at-most = \"1ms\" }",
        "revocations = { client = \"A\", at-most = 1 }",
        "tokens-conserved = true",
    ] {
        assert_refused(&format!("[[assert]]\n{assertion}\n"), 2, missing);
    }
}

#[test]
fn timetables_that_cannot_be_are_refused() {
    assert_refused("[slots]\ncolumns = 0\n", 2, "must be 1 to 4096");
    assert_refused("[slots]\ncolumns = 4097\n", 2, "must be 1 to 4096");
    assert_refused("[slots]\nlength = \"999us\"\n", 2, "must be 1ms to 100ms");
    assert_refused("[slots]\nlength = \"101ms\"\n", 2, "must be 1ms to 100ms");
    assert_refused(
        "[slots]\nreserve = { slots = 3, of = 2 }\n",
        2,
        "slots is 3: it must be 0 to 2",
    );
    assert_refused(
        "[slots]\nreserve = { slots = 1, of = 121 }\n",
        2,
        "of is 121: it must be 1 to 120",
    );
    assert_refused(
        "[slots]\n[machine]\nhybrid = { nice = true }\n",
        3,
        "hybrid scheduling beside a timetable is not simulated",
    );
    assert_refused("max = \"50%\"\n[slots]\n", 1, "limits or CPUs of their own");
    assert_refused("cpus = [0]\n[slots]\n", 1, "limits or CPUs of their own");
    assert_refused(
        "[slots]\ntokens = [{ of = \"X\", level = \"hard\", count = 1 }]\n",
        2,
        "there is no client \"X\"",
    );
    assert_refused(
        "[slots]\ntokens = [{ of = \"A\", level = \"high\", count = 1 }]\n",
        2,
        "unknown variant `high`",
    );
}

#[test]
fn claims_that_cannot_be_are_refused() {
    let claim = |rest: &str, line: usize, part: &str| {
        assert_refused(
            &format!("[slots]\nuser-tokens = 100\n[[claim]]\nby = \"A\"\n{rest}\n"),
            line + 4,
            part,
        );
    };
    claim("slots = [\"0-3\"]", 1, "\"0-3\" names no slots");
    claim("slots = [\"1:3\"]", 1, "the number of a CPU is 1");
    claim("slots = [\"0:3-120\"]", 1, "the last column is 120");
    claim("slots = [\"0:3-2\"]", 1, "the first column is 3");
    claim("slots = []", 1, "there is no slot: name at least one");
    claim("gang = { threads = 2 }", 1, "threads is 2");
    claim(
        "gang = { threads = 1, cpus = [1] }",
        1,
        "the number of a CPU is 1",
    );
    claim(
        "periodic = { slots = 3, period = 2 }",
        1,
        "the number of slots is 3",
    );
    claim("periodic = { slots = 1, period = 121 }", 1, "period is 121");
    claim("thread = 0\nslots = [\"0:3\"]", 1, "thread is 0");
    claim(
        "runs = \"X\"\nslots = [\"0:3\"]",
        1,
        "there is no client \"X\"",
    );
    claim(
        "level = \"gang\"\nslot = [\"0:3\"]",
        2,
        "unknown field `slot`",
    );
    // Those of the whole claim stand at its head.
    let whole = |rest: &str, part: &str| {
        let text = format!("[slots]\nuser-tokens = 100\n[[claim]]\nby = \"A\"\n{rest}\n");
        assert_refused(&text, 3, part);
    };
    whole("", "in one way");
    whole("cache = 1\nbest-effort = 1", "in one way");
    whole("best-effort = 101", "no token of level");
    whole("cache = 1\nexpires = \"0s\"", "name a later end");
    whole(
        "event = { slots = 5, within = \"60ms\" }",
        "there is room for 0 of 5 slots",
    );
}
