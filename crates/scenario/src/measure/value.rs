//! Whether value is conserved.

use prorata_core::ledger::{Ledger, Value};

use crate::plan::client_id;

/// The clients' values do not sum to the active base amount: a bug.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[error("active clients are worth {clients} base units, active base tickets {base}")]
pub struct ValueLost {
    /// Sum of the clients' values.
    pub clients: f64,
    /// The active base amount.
    pub base: f64,
}

/// Checks that the values of the clients, which are numbered from zero, sum to the active
/// base amount. O(clients).
///
/// # Errors
///
/// The sum and the amount.
pub fn check_value(ledger: &Ledger, clients: u32) -> Result<(), ValueLost> {
    let clients: u128 = (0..clients).map(|c| ledger.value(client_id(c)).0).sum();
    let base = u128::from(ledger.active_base_amount()) << Value::FRACTION_BITS;
    // Each active ticket loses less than one unit, and none is gained.
    let lost = base.checked_sub(clients);
    if lost.is_some_and(|lost| lost <= ledger.tickets().count() as u128) {
        return Ok(());
    }
    Err(ValueLost {
        clients: Value(clients).to_f64(),
        base: Value(base).to_f64(),
    })
}
