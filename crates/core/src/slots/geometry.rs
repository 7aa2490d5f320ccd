//! The shape of the timetable: CPUs by slots of equal length (2005, 2.1).

use core::fmt;

use super::error::SlotError;

/// Slots since the epoch. Slot `k` of the table comes up at every tick that leaves `k` when divided
/// by the number of columns (2005, 2.2).
pub type Tick = u64;

/// The most cells of a table.
pub const CELLS: u32 = 1 << 20;
/// The most columns of a table.
pub const COLUMNS: u32 = 4_096;
/// The shortest slot.
pub const SHORTEST_NS: u64 = 1_000_000;
/// The longest slot.
pub const LONGEST_NS: u64 = 100_000_000;

/// One place of the table: a CPU and a slot of the period.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Cell {
    /// The CPU, counted from zero.
    pub row: u32,
    /// The slot of the period, counted from zero.
    pub column: u32,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.row, self.column)
    }
}

/// The number of CPUs and slots, the length of a slot and the beginning of slot zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    rows: u32,
    columns: u32,
    slot_ns: u64,
    epoch_ns: u64,
}

impl Geometry {
    /// The columns of a table that names none.
    pub const DEFAULT_COLUMNS: u32 = 120;
    /// The slot's length of a table that names none.
    pub const DEFAULT_SLOT_NS: u64 = 10_000_000;

    /// A table of `rows` CPUs whose slot zero begins at `epoch_ns`.
    pub fn new(rows: u32, columns: u32, slot_ns: u64, epoch_ns: u64) -> Result<Self, SlotError> {
        if rows == 0 || columns == 0 || columns > COLUMNS || rows > CELLS / columns {
            return Err(SlotError::Size { rows, columns });
        }
        if !(SHORTEST_NS..=LONGEST_NS).contains(&slot_ns) {
            return Err(SlotError::SlotLength(slot_ns));
        }
        Ok(Self {
            rows,
            columns,
            slot_ns,
            epoch_ns,
        })
    }

    /// The number of CPUs.
    pub const fn rows(&self) -> u32 {
        self.rows
    }

    /// The number of slots in a period.
    pub const fn columns(&self) -> u32 {
        self.columns
    }

    /// The length of a slot.
    pub const fn slot_ns(&self) -> u64 {
        self.slot_ns
    }

    /// The time from a slot to the same one of the next period.
    pub const fn period_ns(&self) -> u64 {
        self.columns as u64 * self.slot_ns
    }

    /// The tick that is under way at `now_ns`; zero before the epoch.
    pub const fn tick_at(&self, now_ns: u64) -> Tick {
        now_ns.saturating_sub(self.epoch_ns) / self.slot_ns
    }

    /// When a tick begins.
    pub const fn begin_ns(&self, tick: Tick) -> u64 {
        self.epoch_ns
            .saturating_add(tick.saturating_mul(self.slot_ns))
    }

    /// The column of a tick.
    pub const fn column(&self, tick: Tick) -> u32 {
        (tick % self.columns as u64) as u32
    }

    /// The first tick at or after `from` in which a column comes up; `None` past the last tick.
    pub fn comes_up(&self, column: u32, from: Tick) -> Option<Tick> {
        let wait = (column + self.columns - self.column(from)) % self.columns;
        from.checked_add(u64::from(wait))
    }

    /// The number of cells.
    pub const fn cells(&self) -> usize {
        self.rows as usize * self.columns as usize
    }

    /// The dense number of a cell.
    pub fn index(&self, cell: Cell) -> Result<usize, SlotError> {
        if cell.row >= self.rows || cell.column >= self.columns {
            return Err(SlotError::Outside(cell));
        }
        Ok(cell.row as usize * self.columns as usize + cell.column as usize)
    }

    /// The cell of a dense number.
    pub const fn cell(&self, index: usize) -> Cell {
        let columns = self.columns as usize;
        Cell {
            row: (index / columns) as u32,
            column: (index % columns) as u32,
        }
    }
}
