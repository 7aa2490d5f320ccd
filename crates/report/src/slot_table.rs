//! The table of slots as the thesis draws it (2005, Figure 2.1): a row for each CPU, a column for
//! each slot.

use crate::text::{printable, width};

/// What an unclaimed slot looks like.
const UNCLAIMED: &str = ".";

/// Successive slots of some CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotTable {
    /// The number of the first slot.
    pub first: u32,
    /// Each CPU's number, and the names in its slots.
    pub rows: Vec<(u32, Vec<Option<String>>)>,
}

impl SlotTable {
    /// Lines of at most `limit` columns of a terminal, if one slot fits. What is wider goes on
    /// below, under a heading of its own.
    pub fn lines(&self, limit: usize) -> Vec<String> {
        let slots = self.rows.iter().map(|(_, row)| row.len()).max();
        let slots = slots.unwrap_or(0);
        let names: Vec<Vec<String>> = self.rows.iter().map(|(_, row)| names(row)).collect();
        let cpus: Vec<String> = self
            .rows
            .iter()
            .map(|(cpu, _)| format!("CPU {cpu}"))
            .collect();
        let number = |slot: usize| (self.first as usize + slot).to_string();
        let widest = |texts: &[String]| texts.iter().map(|text| width(text)).max().unwrap_or(0);
        let label = widest(&cpus);
        let cell = names.iter().map(|row| widest(row)).max().unwrap_or(0);
        let cell = cell.max(number(slots.saturating_sub(1)).len());
        let in_a_line = (limit.saturating_sub(label) / (cell + 2)).max(1);
        let mut lines = Vec::new();
        for begin in (0..slots).step_by(in_a_line) {
            let end = (begin + in_a_line).min(slots);
            if begin > 0 {
                lines.push(String::new());
            }
            let numbers: Vec<String> = (begin..end).map(number).collect();
            lines.push(line("", label, &numbers, cell));
            for (cpu, names) in cpus.iter().zip(&names) {
                let names = &names[begin.min(names.len())..end.min(names.len())];
                lines.push(line(cpu, label, names, cell));
            }
        }
        lines
    }
}

fn names(row: &[Option<String>]) -> Vec<String> {
    let name = |slot: &Option<String>| slot.as_deref().map_or(UNCLAIMED.into(), printable);
    row.iter().map(name).collect()
}

fn line(label: &str, label_width: usize, cells: &[String], cell_width: usize) -> String {
    let mut line = padded(label, label_width);
    for cell in cells {
        line.push_str("  ");
        line.push_str(&padded(cell, cell_width));
    }
    line.truncate(line.trim_end().len());
    line
}

fn padded(text: &str, to: usize) -> String {
    let pad = to.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(pad))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cpu: u32, names: [u32; 6]) -> (u32, Vec<Option<String>>) {
        let name = |pid| (pid > 0).then(|| format!("PID {pid}"));
        (cpu, names.into_iter().map(name).collect())
    }

    fn figure_2_1() -> SlotTable {
        SlotTable {
            first: 33,
            rows: vec![
                row(1, [293, 0, 37, 0, 0, 0]),
                row(2, [0, 18, 37, 18, 0, 18]),
                row(3, [42, 42, 37, 0, 0, 37]),
                row(4, [0, 26, 37, 0, 26, 37]),
            ],
        }
    }

    /// The slots of the first row are a guess: our copy of the thesis has lost the empty ones.
    #[test]
    fn figure_2_1_is_drawn() {
        assert_eq!(
            figure_2_1().lines(80),
            [
                "       33       34       35       36       37       38",
                "CPU 1  PID 293  .        PID 37   .        .        .",
                "CPU 2  .        PID 18   PID 37   PID 18   .        PID 18",
                "CPU 3  PID 42   PID 42   PID 37   .        .        PID 37",
                "CPU 4  .        PID 26   PID 37   .        PID 26   PID 37",
            ]
        );
    }

    #[test]
    fn what_does_not_fit_goes_on_below() {
        for limit in 0..80 {
            let lines = figure_2_1().lines(limit);
            let fits = |line: &String| width(line) <= limit.max(14);
            assert!(lines.iter().all(fits), "{limit}: {lines:?}");
            let all = lines.join(" ");
            assert_eq!(all.matches("PID 37").count(), 6, "{limit}");
        }
        assert_eq!(figure_2_1().lines(30).len(), 3 * 5 + 2);
        let none = SlotTable {
            first: 0,
            rows: Vec::new(),
        };
        assert_eq!(none.lines(80), Vec::<String>::new());
    }

    #[test]
    fn names_cannot_move_the_cursor() {
        let name = Some("\u{1b}[2J".to_owned());
        let table = SlotTable {
            first: 0,
            rows: vec![(0, vec![name, None])],
        };
        assert_eq!(table.lines(80)[1], "CPU 0  \\u{1b}[2J  .");
    }
}
