//! Output for readers: tables with bars, the currency graph, charts, pages, and
//! the figures of benches.
//!
//! Each view turns plain values into text or SVG. The crate talks to no daemon
//! and reads no clock. It escapes names, so no name can move a cursor or break
//! out of a drawing.

pub mod bar;
pub mod chart;
pub mod figures;
pub mod graph;
pub mod page;
pub mod plot;
pub mod slot_svg;
pub mod slot_table;
pub mod svg;
pub mod table;
pub mod text;
pub mod timeline;
