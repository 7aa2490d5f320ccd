//! Slot scheduling (2005).

mod histories;
mod naive;
mod places;
mod rules;
