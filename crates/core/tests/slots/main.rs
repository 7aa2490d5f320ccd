//! Slot scheduling (2005).

mod admission;
mod calls;
mod checks;
mod claimable;
mod histories;
mod naive;
mod packings;
mod places;
mod plans;
mod readers;
mod rules;
mod tokens;
