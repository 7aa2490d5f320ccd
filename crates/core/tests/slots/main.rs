//! Slot scheduling (2005).

mod admission;
mod calls;
mod claimable;
mod histories;
mod naive;
mod packings;
mod places;
mod readers;
mod rules;
mod tokens;
