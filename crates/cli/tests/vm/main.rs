//! Commands in micro-VMs on every supported kernel. Needs QEMU and fetched kernels:
//! `make vm-test` provides both.

mod trace;

use std::fs;
use std::io::Read as _;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};

const PRORATA: &str = env!("CARGO_BIN_EXE_prorata");

/// The oldest supported kernel series and the current one.
const SERIES: [&str; 2] = ["6.18", "7"];

type Check = fn(&str) -> Result<(), Failed>;

/// The checks of a short run, where `SHORT_TESTS` is set.
const IN_SHORT: [&str; 7] = [
    "output_and_exit_code_come_through_on_6.18",
    "a_late_reader_gets_all_output_on_6.18",
    "the_kernel_s_files_are_in_place_on_6.18",
    "decisions_are_traced_and_allowed_on_6.18",
    "the_floor_takes_all_processes_on_7",
    "killed_machines_leave_nothing",
    "a_command_that_hangs_is_ended_on_7",
];

const CHECKS: [(&str, Check); 9] = [
    ("output_and_exit_code_come_through", output_and_exit_code),
    ("signals_and_refusals_come_through", signals_and_refusals),
    ("writes_stay_in_the_machine", writes_stay),
    ("processes_that_a_command_leaves_are_ended", nothing_left),
    ("a_late_reader_gets_all_output", late_reader),
    ("the_kernel_s_files_are_in_place", kernel_files),
    ("the_floor_takes_all_processes", floor),
    ("the_clock_counts_instructions", counted),
    ("a_command_that_hangs_is_ended", limited),
];

fn all() -> impl Iterator<Item = (&'static str, Check)> {
    CHECKS.into_iter().chain(trace::CHECKS)
}

fn main() {
    let mut arguments = Arguments::from_args();
    // Other tests run beside this one.
    arguments.test_threads = Some(1);
    let mut trials = Vec::new();
    for series in SERIES {
        for (name, check) in all() {
            let name = format!("{name}_on_{series}");
            trials.push(Trial::test(name, move || check(series)));
        }
    }
    trials.push(Trial::test("killed_machines_leave_nothing", killed));
    if std::env::var_os("SHORT_TESTS").is_some() {
        trials.retain(|trial| IN_SHORT.contains(&trial.name()));
        assert_eq!(trials.len(), IN_SHORT.len(), "a check has another name");
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn machine(series: &str, options: &[&str], command: &[&str]) -> Result<Output, Failed> {
    let mut prorata = Command::new(PRORATA);
    prorata.args(["vm", "run", "--kernel", series]);
    prorata.args(options).arg("--").args(command);
    Ok(prorata.stdin(Stdio::null()).output()?)
}

fn shell(series: &str, script: &str) -> Result<Output, Failed> {
    machine(series, &[], &["sh", "-c", script])
}

fn same<T: PartialEq + std::fmt::Debug>(
    found: T,
    expected: T,
    output: &Output,
) -> Result<(), Failed> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{found:?} instead of {expected:?}: {output:?}").into())
}

fn output_and_exit_code(series: &str) -> Result<(), Failed> {
    let output = shell(
        series,
        "uname -r; pwd; echo to errors >&2; cat; seq 100000; exit 7",
    )?;
    same(output.status.code(), Some(7), &output)?;
    let text = String::from_utf8(output.stdout.clone())?;
    let mut lines = text.lines();
    let release = lines.next().unwrap_or_default();
    same(release.starts_with(series), true, &output)?;
    let here = std::env::current_dir()?;
    same(lines.next(), here.to_str(), &output)?;
    let numbers: Vec<String> = (1..=100_000).map(|number| number.to_string()).collect();
    if !lines.eq(numbers.iter().map(String::as_str)) {
        return Err("long output did not come through whole".into());
    }
    same(output.stderr.as_slice(), b"to errors\n", &output)
}

fn signals_and_refusals(series: &str) -> Result<(), Failed> {
    use std::os::unix::process::ExitStatusExt as _;
    let output = shell(series, "kill -TERM $$")?;
    same(output.status.signal(), Some(libc::SIGTERM), &output)?;
    for (command, code) in [("/no/such/command", 127), ("/etc/passwd", 126)] {
        let output = machine(series, &[], &[command])?;
        same(output.status.code(), Some(code), &output)?;
        same(output.stderr.is_empty(), false, &output)?;
    }
    Ok(())
}

fn writes_stay(series: &str) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("file");
    fs::write(&file, "of the host")?;
    let script = format!(
        "cat {0} && echo changed > {0} && cat {0} && touch {0}.new /usr/bin/x && test -d /sys/fs/cgroup/init.scope -o -f /sys/fs/cgroup/cgroup.procs",
        file.display()
    );
    let output = shell(series, &script)?;
    same(output.status.code(), Some(0), &output)?;
    same(output.stdout.as_slice(), b"of the hostchanged\n", &output)?;
    same(fs::read_to_string(&file)?.as_str(), "of the host", &output)?;
    same(fs::read_dir(directory.path())?.count(), 1, &output)
}

fn nothing_left(series: &str) -> Result<(), Failed> {
    let begin = Instant::now();
    // The sleeper holds the command's output open.
    let output = shell(series, "sleep 3000 & echo begun")?;
    same(output.status.code(), Some(0), &output)?;
    same(output.stdout.as_slice(), b"begun\n", &output)?;
    same(begin.elapsed() < Duration::from_secs(1000), true, &output)
}

/// What the kernel said comes through.
fn limited(series: &str) -> Result<(), Failed> {
    let script = "echo '<0>a last word' >/dev/kmsg; echo begun; sleep 3000";
    let output = machine(series, &["--limit", "20"], &["sh", "-c", script])?;
    same(output.status.code(), Some(1), &output)?;
    same(output.stdout.as_slice(), b"begun\n", &output)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    for words in ["not ended within 20 s", "a last word"] {
        same(errors.contains(words), true, &output)?;
    }
    // The reason is what stays on the screen.
    let last = errors.lines().last().unwrap_or_default();
    same(last.contains("not ended within 20 s"), true, &output)
}

fn floor(series: &str) -> Result<(), Failed> {
    let script =
        "cat /sys/kernel/sched_ext/state; sed -n 's/^ext.enabled *: *//p' /proc/self/sched";
    let command = [PRORATA, "floor", "sh", "-c", script];
    let output = machine(series, &["--cpus", "2"], &command)?;
    same(output.status.code(), Some(0), &output)?;
    same(output.stdout.as_slice(), b"enabled\n1\n", &output)?;
    // The scheduler is unloaded afterwards, so another can be loaded.
    let script =
        format!("{PRORATA} floor true && {PRORATA} floor true && cat /sys/kernel/sched_ext/state");
    let output = shell(series, &script)?;
    same(output.stdout.as_slice(), b"disabled\n", &output)
}

/// More output than the pipes and the guest's queue hold waits in the guest for a
/// reader that begins after the command's end.
fn late_reader(series: &str) -> Result<(), Failed> {
    const BYTES: usize = 3_000_000;
    let script = format!("head -c {BYTES} /dev/zero");
    let mut prorata = Command::new(PRORATA)
        .args(["vm", "run", "--kernel", series, "--", "sh", "-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = prorata.stdout.take().ok_or("no pipe")?;
    output.read_exact(&mut [0])?;
    sleep(Duration::from_secs(2));
    let mut rest = Vec::new();
    output.read_to_end(&mut rest)?;
    let status = prorata.wait()?;
    if (rest.len(), status.code()) != (BYTES - 1, Some(0)) {
        return Err(format!("{} more bytes, then {status}", rest.len()).into());
    }
    Ok(())
}

/// Loaders of BPF find the kernel's configuration, `modprobe` the modules, and
/// programs a loopback interface.
fn kernel_files(series: &str) -> Result<(), Failed> {
    let output = shell(
        series,
        "grep CONFIG_SCHED_CLASS_EXT= /boot/config-$(uname -r) && /sbin/modprobe sch_fq && \
         ls -d /sys/module/sch_fq && cat /sys/class/net/lo/flags",
    )?;
    let expected = "CONFIG_SCHED_CLASS_EXT=y\n/sys/module/sch_fq\n0x9\n";
    same(output.stdout.as_slice(), expected.as_bytes(), &output)
}

/// A shell loop takes eight times as long if each instruction does, even on a busy host.
/// Compares the least of several times, because the kernel does other work and reads
/// files at the host's speed.
fn counted(series: &str) -> Result<(), Failed> {
    let script = "for n in 1 2 3 4 5 6; do a=$(date +%s%N); i=0; \
                  while [ $i -lt 9000 ]; do i=$((i+1)); done; echo $(($(date +%s%N)-a)); done";
    let least_ns = |icount: &str| -> Result<f64, Failed> {
        let output = machine(series, &[icount], &["sh", "-c", script])?;
        let text = String::from_utf8(output.stdout.clone())?;
        let times = text.lines().filter_map(|line| line.parse::<u32>().ok());
        let least = times.min().ok_or_else(|| format!("{output:?}"))?;
        Ok(f64::from(least))
    };
    let (short, long) = (least_ns("--icount=2")?, least_ns("--icount=16")?);
    // The kernel's other work differs between two micro-VMs.
    if !(5.0..12.0).contains(&(long / short)) {
        return Err(format!("{short} and {long} ns").into());
    }
    Ok(())
}

/// Neither QEMU nor virtiofsd outlives a killed `prorata vm run`.
fn killed() -> Result<(), Failed> {
    let mut prorata = Command::new(PRORATA)
        .args([
            "vm",
            "run",
            "--memory",
            "512",
            "--",
            "sh",
            "-c",
            "echo up; sleep 3000",
        ])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = prorata.stdout.take().ok_or("no pipe")?;
    std::io::Read::read_exact(&mut output, &mut [0; 3])?;
    let children = children_of(prorata.id())?;
    if children.len() != 2 {
        return Err(format!("children {children:?}").into());
    }
    prorata.kill()?;
    prorata.wait()?;
    let begin = Instant::now();
    while children.iter().any(|pid| is_running(pid)) {
        if begin.elapsed() > Duration::from_secs(60) {
            return Err(format!("some of {children:?} are left").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn children_of(pid: u32) -> Result<Vec<String>, Failed> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(children.split_whitespace().map(str::to_owned).collect())
}

/// Whether a process has ended, reaped or not.
fn is_running(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim().is_empty() && !rest.starts_with(" Z"))
}
