//! Threads by which CPUs look at their rows of the timetable: one for each row, on its CPU, when the
//! caller asks for a look. Where the kernel has no timer for boundaries of slots (PREEMPT_RT), the
//! thread also sleeps until the next boundary of its row, and looks there.
//!
//! A program of a higher class may have a CPU for ever. So a caller waits for a look for a bounded time,
//! and for none of a row that owes it one already; the look comes once the thread gets its CPU.

use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;

use libbpf_rs::libbpf_sys;
use rustix::thread::{CpuSet, futex, sched_setaffinity};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::prorata_skeleton::types;

/// How often a thread that keeps boundaries returns to its CPU, in case that was offline.
const RETURN_NS: u64 = 1_000_000_000;

/// How long a caller waits for the looks that it asks for, all together. A look takes microseconds.
const PATIENCE_NS: u64 = 20_000_000;

/// Above what runs in slots and above the programs that decide about them, as the other keepers of
/// boundaries are.
const PRIORITY: libc::c_int = 3;

/// A thread makes system calls and no more.
const STACK_BYTES: usize = 64 << 10;

/// The threads. Dropping this has each of them look once more and end, at once or when it gets its CPU.
pub(super) struct Boundaries {
    shared: Arc<Shared>,
}

struct Shared {
    /// The program `look_at_row`.
    program: OwnedFd,
    rows: Vec<Row>,
    /// Whether the kernel's timers keep boundaries.
    timed: bool,
    ends: AtomicBool,
}

struct Row {
    cpu: u32,
    /// Looks that callers asked for. The thread waits for a change of this.
    asked: AtomicU32,
    /// Up to which of them the thread has looked. Callers wait for a change of this.
    looked: AtomicU32,
}

/// `struct look_request` of `bpf/abi.h`.
#[repr(C)]
#[derive(Default)]
struct LookRequest {
    cpu: u64,
    due_ns: u64,
}

const _: () = assert!(size_of::<LookRequest>() == size_of::<types::look_request>());

impl Boundaries {
    /// Starts a thread for each of these CPUs, which are those of the rows.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started, or not in its class.
    pub fn start(program: BorrowedFd<'_>, cpus: &[u32], timed: bool) -> io::Result<Self> {
        let row = |&cpu| Row {
            cpu,
            asked: AtomicU32::new(0),
            looked: AtomicU32::new(0),
        };
        let shared = Arc::new(Shared {
            program: program.try_clone_to_owned()?,
            rows: cpus.iter().map(row).collect(),
            timed,
            ends: AtomicBool::new(false),
        });
        // From here on, a failure ends the threads that there are.
        let boundaries = Self { shared };
        let (tell, told) = mpsc::channel();
        for (index, cpu) in cpus.iter().enumerate() {
            let (shared, tell) = (Arc::clone(&boundaries.shared), tell.clone());
            let thread = std::thread::Builder::new()
                .name(format!("boundary-{cpu}"))
                .stack_size(STACK_BYTES);
            thread.spawn(move || {
                let began = outrank_slots();
                let goes_on = began.is_ok();
                let _ = tell.send(began);
                drop(tell);
                if goes_on {
                    shared.keep(&shared.rows[index]);
                }
            })?;
        }
        drop(tell);
        told.iter().collect::<io::Result<()>>()?;
        Ok(boundaries)
    }

    /// Has the CPUs of these rows look at them, and waits for a bounded time until they have.
    pub fn look(&self, rows: impl Iterator<Item = usize>) {
        let rows = rows.map(|row| &self.shared.rows[row]);
        let asked: Vec<(&Row, u32)> = rows
            .filter_map(|row| {
                let before = row.asked.fetch_add(1, Ordering::AcqRel);
                wake(&row.asked);
                let owed = row.looked.load(Ordering::Acquire) != before;
                (!owed).then_some((row, before.wrapping_add(1)))
            })
            .collect();
        let until_ns = now_ns() + PATIENCE_NS;
        for (row, asked) in asked {
            row.await_look(asked, until_ns);
        }
    }
}

impl Drop for Boundaries {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        self.look(0..self.shared.rows.len());
    }
}

impl Row {
    /// Waits until the thread has looked as often as was asked, or until a time.
    fn await_look(&self, asked: u32, until_ns: u64) {
        loop {
            let looked = self.looked.load(Ordering::Acquire);
            // The difference is that of counters which wrap.
            if looked.wrapping_sub(asked) as i32 >= 0 || now_ns() >= until_ns {
                return;
            }
            wait(&self.looked, looked, until_ns);
        }
    }
}

impl Shared {
    fn keep(&self, row: &Row) {
        let mut own = CpuSet::new();
        own.set(row.cpu as usize);
        loop {
            let asked = row.asked.load(Ordering::Acquire);
            let ends = self.ends.load(Ordering::Acquire);
            // The call fails while the CPU is offline, or outside this process's set of CPUs.
            let is_there = sched_setaffinity(None, &own).is_ok();
            // A timer belongs to the CPU that starts it.
            let due_ns = match is_there || !self.timed {
                true => self.look_at_row(row.cpu).unwrap_or(0),
                false => 0,
            };
            if row.looked.swap(asked, Ordering::AcqRel) != asked {
                wake(&row.looked);
            }
            if ends {
                return;
            }
            let return_ns = now_ns() + RETURN_NS;
            let until_ns = match (self.timed, due_ns) {
                (true, _) => u64::MAX,
                (false, 0) => return_ns,
                (false, due_ns) => due_ns.min(return_ns),
            };
            wait(&row.asked, asked, until_ns);
        }
    }

    /// Returns when to look again where no timer does; 0 if nothing is claimed.
    fn look_at_row(&self, cpu: u32) -> io::Result<u64> {
        let mut request = LookRequest {
            cpu: cpu.into(),
            due_ns: 0,
        };
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
            ctx_in: (&raw mut request).cast(),
            ctx_size_in: size_of::<LookRequest>() as u32,
            ..Default::default()
        };
        // SAFETY: the kernel reads and writes `request` and `options` during the call alone, as many
        // bytes as stated.
        let error = unsafe {
            libbpf_sys::bpf_prog_test_run_opts(self.program.as_fd().as_raw_fd(), &raw mut options)
        };
        match error {
            0 => Ok(request.due_ns),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}

/// Puts the calling thread above what runs in slots.
fn outrank_slots() -> io::Result<()> {
    let parameter = libc::sched_param {
        sched_priority: PRIORITY,
    };
    // SAFETY: `parameter` outlives the call, which only reads it.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Waits until the word is no longer `value`, or until a time; may return earlier, and the caller looks
/// again.
fn wait(word: &AtomicU32, value: u32, until_ns: u64) {
    let until = (until_ns != u64::MAX).then_some(Timespec {
        tv_sec: (until_ns / 1_000_000_000) as i64,
        tv_nsec: (until_ns % 1_000_000_000) as _,
    });
    let flags = futex::Flags::PRIVATE;
    let _ = futex::wait_bitset(word, flags, value, until.as_ref(), NonZeroU32::MAX);
}

fn wake(word: &AtomicU32) {
    // Without waiters there is nothing to wake; the call has no other way to fail here.
    let _ = futex::wake(word, futex::Flags::PRIVATE, i32::MAX as u32);
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
