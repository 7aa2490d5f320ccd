//! Parsing, help and man pages, which need no daemon.

use std::path::Path;

use crate::support::{output, prorata, stderr, stdout};

const NOWHERE: &str = "/nonexistent/prorata/socket";

/// Every public command.
const COMMANDS: [&str; 38] = [
    "run",
    "ps",
    "top",
    "events",
    "set",
    "quantum",
    "transfer",
    "release",
    "kill",
    "graph",
    "mkcur",
    "rmcur",
    "mktkt",
    "rmtkt",
    "fund",
    "unfund",
    "lscur",
    "lstkt",
    "fundx",
    "run-tickets",
    "show-tickets",
    "set-funding",
    "show-funding",
    "chuser",
    "start",
    "configure",
    "status",
    "stop",
    "demo",
    "slots",
    "vm",
    "sim",
    "reproduce",
    "trace",
    "observe",
    "load",
    "man",
    "completions",
];

/// Subcommands of other commands.
const COMMANDS_BELOW: [&str; 20] = [
    "slots-open",
    "slots-close",
    "slots-show",
    "slots-watch",
    "slots-claim",
    "slots-free",
    "slots-tokens",
    "slots-donate",
    "slots-run",
    "slots-reserve",
    "slots-admit",
    "slots-check",
    "slots-plan",
    "vm-run",
    "vm-fetch",
    "vm-list",
    "load-chat",
    "load-reflex",
    "load-wake",
    "load-keys",
];

fn run(arguments: &[&str]) -> std::process::Output {
    output(prorata(Path::new(NOWHERE)).args(arguments))
}

#[test]
fn every_command_has_help_with_an_example() {
    for command in COMMANDS {
        let help = run(&[command, "--help"]);
        assert_eq!(help.status.code(), Some(0), "{command}");
        let help = stdout(&help);
        assert!(
            help.contains("Example") && help.contains(&format!("prorata {command} "))
                || help.contains(&format!("prorata {command}\n")),
            "{help}"
        );
    }
}

/// 1999, 4.2.
#[test]
fn commands_have_the_papers_names_too() {
    for (name, ours) in [
        ("set_tickets", "set"),
        ("run_tickets", "run-tickets"),
        ("show_tickets", "show-tickets"),
        ("set_funding", "set-funding"),
        ("show_funding", "show-funding"),
        ("lott_chuser", "chuser"),
    ] {
        assert_eq!(
            stdout(&run(&[name, "--help"])),
            stdout(&run(&[ours, "--help"]))
        );
    }
}

#[test]
fn the_help_lists_every_command() {
    let help = stdout(&run(&["--help"]));
    let listed: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| *name != "help" && !name.is_empty())
        .collect();
    assert_eq!(listed, COMMANDS);
}

#[test]
fn help_and_version_exit_with_0() {
    assert_eq!(run(&["--help"]).status.code(), Some(0));
    let version = run(&["--version"]);
    assert_eq!(
        stdout(&version),
        format!("prorata {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn wrong_usage_exits_with_2_and_names_the_rule() {
    let wrong: [(&[&str], &str); 28] = [
        (&[], "Usage"),
        (&["frobnicate"], "frobnicate"),
        (&["run"], "COMMAND"),
        (
            &["run", "-t", "0", "--", "true"],
            "whole number from 1 to 4294967295",
        ),
        (
            &["run", "-t", "4294967296", "--", "true"],
            "whole number from 1 to 4294967295",
        ),
        (
            &["run", "--cpus", "9-1", "--", "true"],
            "9-1 is no range of CPUs: write 1-9",
        ),
        (&["set", "build"], "TICKETS"),
        (&["set", "build", "-5"], "whole number"),
        (&["set", "build", "many"], "whole number"),
        (&["quantum", "build"], "TIME"),
        (&["quantum", "build", "5"], "such as 20ms"),
        (
            &["quantum", "build", "5ms", "--reset"],
            "cannot be used with",
        ),
        (&["run", "--quantum", "5", "--", "true"], "such as 20ms"),
        (&["mkcur", "x", "--mode", "rwx"], "three octal digits"),
        (&["start", "--quantum", "20"], "such as 20ms"),
        (&["configure"], "Usage"),
        (&["transfer", "build"], "TO"),
        (&["transfer", "build", "viewer"], "viewer=AMOUNT"),
        (&["graph", "--svg", "x", "--json"], "cannot be used with"),
        (&["demo", "--seconds", "1"], "2..=3600"),
        (&["reproduce", "--engine", "warp"], "possible values"),
        (&["reproduce", "1995", "--full"], "--engine user"),
        (
            &["trace", "--check", "--policy", "lottery"],
            "--policy stride",
        ),
        (&["load"], "Usage"),
        (&["load", "chat", "--users", "1"], "1 is not in 2.."),
        (
            &["load", "reflex", "--compute", "1000000001"],
            "0..=1000000000",
        ),
        (
            &["load", "reflex", "--yield-probability", "1.5"],
            "from 0 to 1, such as 0.5",
        ),
        (&["load", "wake", "--wakes", "10000001"], "1..=10000000"),
    ];
    for (arguments, hint) in wrong {
        let refused = run(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(
            stderr(&refused).contains(hint),
            "{arguments:?}: {}",
            stderr(&refused)
        );
        assert_eq!(stdout(&refused), "", "{arguments:?}");
    }
}

#[test]
fn a_refused_socket_exits_with_1_and_one_sentence() {
    let relative = output(prorata(Path::new("socket")).arg("ps"));
    assert_eq!(relative.status.code(), Some(1));
    assert!(
        stderr(&relative).starts_with("prorata: socket path 'socket' does not start at the root")
    );
    let without = run(&["status"]);
    assert_eq!(without.status.code(), Some(1));
    assert_eq!(stderr(&without).lines().count(), 1, "{}", stderr(&without));
    assert!(stderr(&without).contains("no daemon runs on"));
    // No daemon is what the caller wants.
    assert_eq!(run(&["stop"]).status.code(), Some(0));
}

#[test]
fn every_command_has_a_man_page() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("deep/man1");
    assert_eq!(
        run(&["man", pages.to_str().unwrap()]).status.code(),
        Some(0)
    );
    for command in COMMANDS {
        let page = std::fs::read_to_string(pages.join(format!("prorata-{command}.1"))).unwrap();
        assert!(
            page.contains(".SH SYNOPSIS") && page.contains("\n.SH EXAMPLES\n"),
            "{command}: {page}"
        );
    }
    let whole = std::fs::read_to_string(pages.join("prorata.1")).unwrap();
    assert_eq!(whole, stdout(&run(&["man"])));
    assert!(whole.contains("Exit codes"));
    let mut files = 0;
    for file in std::fs::read_dir(&pages).unwrap() {
        let page = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let named = page.replace("\\-", "-");
        let named = named.lines().filter_map(|line| line.strip_suffix("(1)"));
        for page in named {
            assert!(
                pages.join(format!("{page}.1")).exists(),
                "{page}(1) is not there"
            );
        }
        files += 1;
    }
    assert_eq!(
        files,
        1 + COMMANDS.len() + COMMANDS_BELOW.len(),
        "one page a command, none for hidden ones"
    );
    for command in COMMANDS_BELOW {
        assert!(pages.join(format!("prorata-{command}.1")).exists());
    }
}

#[test]
fn an_unwritable_directory_is_named() {
    let refused = run(&["man", "/proc/nowhere"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("/proc/nowhere"));
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "fish", "zsh"] {
        let script = stdout(&run(&["completions", shell]));
        for command in COMMANDS {
            assert!(script.contains(command), "{shell} does not know {command}");
        }
        assert!(
            !script.contains("daemon to be"),
            "hidden commands stay hidden"
        );
    }
    assert_eq!(run(&["completions", "tcsh"]).status.code(), Some(2));
}

/// As the shell does for `prorata run -t 300 -- sha25<Tab>`.
#[test]
fn bash_completes_the_command_after_two_dashes() {
    let script = "source <(\"$0\" completions bash); COMP_WORDS=(prorata run -t 300 -- sha25); \
                  COMP_CWORD=5; _prorata_or_command; printf '%s\n' \"${COMPREPLY[@]}\"; \
                  COMP_WORDS=(prorata rel); COMP_CWORD=1; _prorata_or_command prorata rel prorata; \
                  printf '%s\n' \"${COMPREPLY[@]}\"";
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_prorata")]);
    let ended = output(&mut shell);
    assert_eq!(stderr(&ended), "");
    let words = stdout(&ended);
    let words: Vec<&str> = words.lines().collect();
    assert_eq!((words[0], words.last()), ("sha256sum", Some(&"release")));
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let mut shell = std::process::Command::new("bash");
    shell.args([
        "-c",
        "set -o pipefail; \"$0\" completions zsh | head -1",
        env!("CARGO_BIN_EXE_prorata"),
    ]);
    let ended = output(&mut shell);
    assert_eq!(
        (ended.status.code(), stderr(&ended).as_str()),
        (Some(0), "")
    );
}
