//! What people look at: tables with bars, the currency graph, shares over
//! time, and the figures that benches leave behind.
//!
//! Nothing here talks to a daemon or reads a clock. Each view takes plain
//! values and gives text or SVG; names are made harmless on the way, so that
//! no name can move a cursor or break out of a drawing.

pub mod bar;
pub mod chart;
pub mod figures;
pub mod graph;
pub mod page;
pub mod plot;
pub mod svg;
pub mod table;
pub mod text;
