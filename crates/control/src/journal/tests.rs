//! Histories cut short.
