//! Worths as the kernel keeps them: `worth_t` of `bpf/arithmetic.h`.

/// Base tickets.
pub fn to_f64(worth: u64) -> f64 {
    let exponent = (worth >> 32) as u32;
    f64::from(worth as u32) * 2f64.powi(exponent.cast_signed())
}
