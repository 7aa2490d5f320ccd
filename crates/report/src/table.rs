//! Plain tables for terminals and pipes.

use crate::text::{cut, printable, width};

/// Alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Names and words.
    Left,
    /// Numbers.
    Right,
}

/// A column: its heading, its alignment, and the cell of an item.
pub type Column<T> = (&'static str, Side, fn(&T) -> String);

/// Columns of a terminal that a text takes at most where a table is too wide.
const SHORT_TEXT: usize = 14;

/// Rows under headings. Cells are made printable; columns are as wide as their
/// widest cell and two spaces apart.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these columns.
    pub fn new(columns: &[(&'static str, Side)]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// A table with a row for each item.
    pub fn of<'a, T: 'a>(items: impl IntoIterator<Item = &'a T>, columns: &[Column<T>]) -> Self {
        let headings: Vec<_> = columns
            .iter()
            .map(|(head, side, _)| (*head, *side))
            .collect();
        let mut table = Self::new(&headings);
        for item in items {
            table.row(columns.iter().map(|(.., cell)| cell(item)).collect());
        }
        table
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the number of cells differs from the number of columns.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "one cell for each column");
        self.rows
            .push(cells.iter().map(|cell| printable(cell)).collect());
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Leaves out columns of `less`, the first ones first, until all lines fit into `limit` columns
    /// of a terminal. Where that is not enough, cuts texts on the left to a few characters.
    pub fn fit(&mut self, limit: usize, less: &[&str]) {
        let is_wide = |table: &Self| table.lines(None).iter().any(|line| width(line) > limit);
        for heading in less {
            if !is_wide(self) {
                return;
            }
            self.remove(heading);
        }
        if is_wide(self) {
            for (column, (_, side)) in self.columns.iter().enumerate() {
                let cells = self.rows.iter_mut().map(|row| &mut row[column]);
                for cell in cells.filter(|_| *side == Side::Left) {
                    *cell = cut(cell, SHORT_TEXT);
                }
            }
        }
    }

    fn remove(&mut self, heading: &str) {
        let column = self.columns.iter().position(|(other, _)| *other == heading);
        if let Some(column) = column {
            self.columns.remove(column);
            for row in &mut self.rows {
                row.remove(column);
            }
        }
    }

    /// The heading and the rows, one line each without line ends, cut to `limit`
    /// columns if given.
    pub fn lines(&self, limit: Option<usize>) -> Vec<String> {
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(column, (heading, _))| {
                let cells = self.rows.iter().map(|row| width(&row[column]));
                cells.max().unwrap_or(0).max(width(heading))
            })
            .collect();
        let headings: Vec<String> = self
            .columns
            .iter()
            .map(|(heading, _)| heading.to_string())
            .collect();
        std::iter::once(&headings)
            .chain(&self.rows)
            .map(|cells| {
                let line = self.line(cells, &widths);
                limit.map_or(line.clone(), |limit| cut(&line, limit))
            })
            .collect()
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let padding = " ".repeat(widths[column] - width(cell));
            if column > 0 {
                line.push_str("  ");
            }
            match self.columns[column].1 {
                Side::Left => line.extend([cell.as_str(), &padding]),
                Side::Right => line.extend([&padding, cell.as_str()]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[("NAME", Side::Left), ("TICKETS", Side::Right)]);
        table.row(vec!["build".into(), "300".into()]);
        table.row(vec!["a\u{1b}[1m".into(), "7".into()]);
        table
    }

    #[test]
    fn columns_line_up_and_names_are_harmless() {
        assert_eq!(
            table().lines(None),
            [
                "NAME        TICKETS",
                "build           300",
                "a\\u{1b}[1m        7"
            ]
        );
    }

    #[test]
    fn a_wide_table_loses_the_least_important_columns_and_then_long_texts() {
        let headings = ["NAME", "MORE", "LESS", "STATE"];
        let wide = || {
            let mut table = Table::new(&headings.map(|heading| (heading, Side::Left)));
            table.row(
                ["a program with a long name", "1", "2", "running"]
                    .map(Into::into)
                    .to_vec(),
            );
            table
        };
        let fitted = |limit| {
            let mut table = wide();
            table.fit(limit, &["LESS", "MORE"]);
            table.lines(None)
        };
        assert_eq!(fitted(47), wide().lines(None));
        assert!(fitted(46)[0].ends_with("MORE  STATE"));
        assert_eq!(
            fitted(24),
            ["NAME            STATE", "a program wit…  running"]
        );
    }

    #[test]
    fn no_line_is_wider_than_the_limit() {
        assert_eq!(
            table().lines(Some(8)),
            ["NAME   …", "build  …", "a\\u{1b}…"]
        );
    }
}
