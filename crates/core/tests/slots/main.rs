//! Slot scheduling (2005).

mod admission;
mod calls;
mod claimable;
mod histories;
mod naive;
mod places;
mod readers;
mod rules;
mod tokens;
