//! Boundaries of slots where the kernel has no timer for them (PREEMPT_RT): a real-time thread on each
//! CPU of the table sleeps until the next boundary of its row, and has the scheduler look there.

use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use libbpf_rs::libbpf_sys;
use rustix::thread::{CpuSet, futex, sched_setaffinity};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// How often a thread returns to its CPU, in case that was offline.
const RETURN_NS: u64 = 1_000_000_000;

/// Above what runs in slots and above the programs that decide about them, as the other keepers of
/// boundaries are.
const PRIORITY: libc::c_int = 3;

/// The threads. Dropping this has each of them look once more, and ends them.
pub(super) struct Boundaries {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    /// The program `look_at_row`.
    program: OwnedFd,
    /// Threads wait for a change of this.
    changes: AtomicU32,
    ends: AtomicBool,
}

/// `struct look_request` of `bpf/abi.h`.
#[repr(C)]
#[derive(Default)]
struct LookRequest {
    cpu: u64,
    due_ns: u64,
}

impl Boundaries {
    /// Starts a thread for each of these CPUs.
    pub fn start(program: BorrowedFd<'_>, cpus: &[u32]) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            program: program.try_clone_to_owned()?,
            changes: AtomicU32::new(0),
            ends: AtomicBool::new(false),
        });
        let mut boundaries = Self {
            shared,
            threads: Vec::new(),
        };
        for &cpu in cpus {
            let shared = Arc::clone(&boundaries.shared);
            let thread = std::thread::Builder::new().name(format!("boundary-{cpu}"));
            let thread = thread.spawn(move || shared.keep(cpu))?;
            boundaries.threads.push(thread);
        }
        Ok(boundaries)
    }

    /// All CPUs look at their rows soon.
    pub fn look(&self) {
        self.shared.changes.fetch_add(1, Ordering::Release);
        // Without waiters there is nothing to wake; the call has no other way to fail here.
        let all = i32::MAX as u32;
        let _ = futex::wake(&self.shared.changes, futex::Flags::empty(), all);
    }
}

impl Drop for Boundaries {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        self.look();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn keep(&self, cpu: u32) {
        let mut own = CpuSet::new();
        own.set(cpu as usize);
        let parameter = libc::sched_param {
            sched_priority: PRIORITY,
        };
        // SAFETY: `parameter` outlives the call, which only reads it. The caller loads schedulers, so
        // it may do this.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) };
        loop {
            let changes = self.changes.load(Ordering::Acquire);
            let ends = self.ends.load(Ordering::Acquire);
            // It fails while the CPU is offline.
            let _ = sched_setaffinity(None, &own);
            let due_ns = self.look_at_row(cpu).unwrap_or(0);
            if ends {
                return;
            }
            let return_ns = now_ns() + RETURN_NS;
            self.wait(
                changes,
                if due_ns == 0 {
                    return_ns
                } else {
                    due_ns.min(return_ns)
                },
            );
        }
    }

    /// Returns when to look again; 0 if nothing is claimed.
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

    fn wait(&self, changes: u32, until_ns: u64) {
        let until = Timespec {
            tv_sec: (until_ns / 1_000_000_000) as i64,
            tv_nsec: (until_ns % 1_000_000_000) as _,
        };
        let all = NonZeroU32::MAX;
        // However it returns, the thread looks again.
        let _ = futex::wait_bitset(
            &self.changes,
            futex::Flags::empty(),
            changes,
            Some(&until),
            all,
        );
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
