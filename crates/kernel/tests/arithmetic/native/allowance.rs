//! The functions of `native.c` for `bpf/allowance.h`.

mod c {
    use super::Raw;

    // SAFETY: declared as in native.c. All are pure, but for what a pointer points to.
    unsafe extern "C" {
        pub safe static prorata_allowance_bytes: u64;
        pub safe fn prorata_begin_allowance(allowance: &mut Raw, max: u32, now_ns: u64);
        pub safe fn prorata_change_max(allowance: &mut Raw, max: u32);
        pub safe fn prorata_spend(allowance: &mut Raw, used_ns: u64);
        pub safe fn prorata_regain(allowance: &mut Raw, now_ns: u64);
        pub safe fn prorata_is_exhausted(allowance: &Raw) -> bool;
        pub safe fn prorata_allowance_lasts_ns(allowance: &Raw, cpus: u32) -> u64;
    }
}

const WORDS: usize = 3;

/// The bytes of a `struct allowance`.
#[repr(C)]
pub struct Raw([u64; WORDS]);

pub struct Allowance(Raw);

impl Allowance {
    pub fn new(max: u32, now_ns: u64) -> Self {
        assert_eq!(c::prorata_allowance_bytes, size_of::<Raw>() as u64);
        let mut allowance = Self(Raw([0; WORDS]));
        c::prorata_begin_allowance(&mut allowance.0, max, now_ns);
        allowance
    }

    pub fn change_max(&mut self, max: u32) {
        c::prorata_change_max(&mut self.0, max);
    }

    pub fn spend(&mut self, used_ns: u64) {
        c::prorata_spend(&mut self.0, used_ns);
    }

    pub fn regain(&mut self, now_ns: u64) {
        c::prorata_regain(&mut self.0, now_ns);
    }

    pub fn is_exhausted(&self) -> bool {
        c::prorata_is_exhausted(&self.0)
    }

    pub fn lasts_ns(&self, cpus: u32) -> u64 {
        c::prorata_allowance_lasts_ns(&self.0, cpus)
    }
}
