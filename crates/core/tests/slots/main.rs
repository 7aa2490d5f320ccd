//! Slot scheduling (2005).

mod histories;
mod naive;
