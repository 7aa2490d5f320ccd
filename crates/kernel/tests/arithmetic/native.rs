//! The functions of `native.c`.

mod c {
    // SAFETY: pure functions of numbers, declared as in native.c.
    unsafe extern "C" {
        pub safe fn prorata_worth_of(amount: u64) -> u64;
        pub safe fn prorata_worth_add(a: u64, b: u64) -> u64;
        pub safe fn prorata_worth_multiply(a: u64, b: u64) -> u64;
        pub safe fn prorata_worth_divide(a: u64, b: u64) -> u64;
        pub safe fn prorata_wait_for(service_ns: u64, tickets: u64) -> u64;
        pub safe fn prorata_service_in(wait: u64, tickets: u64) -> u64;
        pub safe fn prorata_rescaled(remain: i64, from: u64, to: u64) -> i64;
        pub safe fn prorata_minus_ln(bits: u64) -> u64;
        pub safe fn prorata_chanced(service_ns: u64, bits: u64) -> u64;
    }
}

pub use c::prorata_chanced as chanced;
pub use c::prorata_minus_ln as minus_ln;

pub const PASS_BITS: i32 = 20;
pub const LONGEST_WAIT: i64 = 1 << 60;

#[derive(Clone, Copy)]
pub struct Worth(u64);

impl Worth {
    pub fn of(amount: u64) -> Self {
        Self(c::prorata_worth_of(amount))
    }

    pub fn plus(self, other: Self) -> Self {
        Self(c::prorata_worth_add(self.0, other.0))
    }

    pub fn times(self, other: Self) -> Self {
        Self(c::prorata_worth_multiply(self.0, other.0))
    }

    pub fn over(self, other: Self) -> Self {
        Self(c::prorata_worth_divide(self.0, other.0))
    }

    pub fn to_f64(self) -> f64 {
        let exponent = (self.0 >> 32) as u32;
        (self.0 as u32) as f64 * 2f64.powi(exponent.cast_signed())
    }
}

pub fn wait_for(service_ns: u64, tickets: Worth) -> u64 {
    c::prorata_wait_for(service_ns, tickets.0)
}

pub fn service_in(wait: u64, tickets: Worth) -> u64 {
    c::prorata_service_in(wait, tickets.0)
}

pub fn rescaled(remain: i64, from: Worth, to: Worth) -> i64 {
    c::prorata_rescaled(remain, from.0, to.0)
}
