//! Slot scheduling (2005).

mod calls;
mod histories;
mod naive;
mod places;
mod rules;
mod tokens;
