//! The functions of `native.c` for `bpf/window.h`.

mod c {
    use super::Raw;

    // SAFETY: declared as in native.c. All are pure, but for what a pointer points to.
    unsafe extern "C" {
        pub safe fn prorata_due_rate(value: u32, total: u64, cpus: u32, threads: u32) -> u64;
        pub safe fn prorata_due_in(rate: u64, elapsed_ns: u64) -> u64;
        pub safe fn prorata_fraction(received_ns: u64, deserved_ns: u64) -> u32;
        pub safe fn prorata_lead_bound_of(quantum_ns: u64) -> u64;
        pub safe fn prorata_drained(lead_ns: u64, due_ns: u64) -> u64;
        pub safe fn prorata_risen(lead_ns: u64, used_ns: u64) -> u64;
        pub safe fn prorata_wakes_early(class: u32, part: u32, lead_ns: u64, bound_ns: u64)
        -> bool;
        pub safe fn prorata_early_rank(class: u32, part: u32, arrival: u64) -> u64;
        pub safe static prorata_window_bytes: u64;
        pub safe fn prorata_window_from(window: &mut Raw, now_ns: u64);
        pub safe fn prorata_advance(window: &mut Raw, now_ns: u64, rate: u64) -> u64;
        pub safe fn prorata_receive(window: &mut Raw, used_ns: u64);
        pub safe fn prorata_received(window: &Raw) -> u64;
        pub safe fn prorata_deserved(window: &Raw) -> u64;
        pub safe fn prorata_fraction_after(window: &Raw, used_ns: u64) -> u32;
    }
}

pub use c::prorata_drained as drained;
pub use c::prorata_due_in as due_in;
pub use c::prorata_due_rate as due_rate;
pub use c::prorata_early_rank as early_rank;
pub use c::prorata_fraction as fraction;
pub use c::prorata_lead_bound_of as lead_bound_of;
pub use c::prorata_risen as risen;
pub use c::prorata_wakes_early as wakes_early;

const WORDS: usize = 26;

/// The bytes of a `struct use_window`.
#[repr(C)]
pub struct Raw([u64; WORDS]);

pub struct Window(Raw);

impl Window {
    pub fn new(now_ns: u64) -> Self {
        assert_eq!(c::prorata_window_bytes, size_of::<Raw>() as u64);
        let mut window = Self(Raw([0; WORDS]));
        c::prorata_window_from(&mut window.0, now_ns);
        window
    }

    pub fn advance(&mut self, now_ns: u64, rate: u64) -> u64 {
        c::prorata_advance(&mut self.0, now_ns, rate)
    }

    pub fn receive(&mut self, used_ns: u64) {
        c::prorata_receive(&mut self.0, used_ns);
    }

    pub fn received_ns(&self) -> u64 {
        c::prorata_received(&self.0)
    }

    pub fn deserved_ns(&self) -> u64 {
        c::prorata_deserved(&self.0)
    }

    pub fn fraction(&self) -> u32 {
        c::prorata_fraction_after(&self.0, 0)
    }
}
