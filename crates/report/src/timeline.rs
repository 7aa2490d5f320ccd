//! What each CPU ran, over some milliseconds.

/// What a cell looks like if nothing known took half of it.
const REST: char = '.';

/// Cells between two numbers of the heading.
const NUMBERED: usize = 10;

/// A time in which a CPU ran something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// The CPU.
    pub cpu: u32,
    /// What it ran.
    pub mark: char,
    /// The beginning.
    pub from_ns: u64,
    /// The end.
    pub to_ns: u64,
}

/// Successive cells of equal time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timeline {
    /// The first moment.
    pub from_ns: u64,
    /// The length of a cell.
    pub cell_ns: u64,
    /// The number of cells.
    pub cells: usize,
    /// The CPUs, a line each.
    pub cpus: Vec<u32>,
}

impl Timeline {
    /// A heading in cells, and a line for each CPU. A cell shows what took most of it, if that is at
    /// least half of it.
    pub fn lines(&self, stretches: &[Stretch]) -> Vec<String> {
        let labels: Vec<String> = self.cpus.iter().map(|cpu| format!("CPU {cpu}")).collect();
        let label = labels.iter().map(String::len).max().unwrap_or(0);
        let numbers = (0..self.cells).step_by(NUMBERED);
        let numbers = numbers.map(|number| format!("{number:<NUMBERED$}"));
        let heading = format!("{:label$}  {}", "", numbers.collect::<String>());
        let rows = self.cpus.iter().zip(&labels).map(|(&cpu, name)| {
            let cells = (0..self.cells).map(|cell| self.mark(cell, cpu, stretches));
            format!("{name:label$}  {}", cells.collect::<String>())
        });
        std::iter::once(heading.trim_end().to_owned())
            .chain(rows)
            .collect()
    }

    fn mark(&self, cell: usize, cpu: u32, stretches: &[Stretch]) -> char {
        let from_ns = self.from_ns + cell as u64 * self.cell_ns;
        let to_ns = from_ns + self.cell_ns;
        let mut taken: Vec<(char, u64)> = Vec::new();
        for stretch in stretches.iter().filter(|stretch| stretch.cpu == cpu) {
            let common = stretch.to_ns.min(to_ns);
            let common_ns = common.saturating_sub(stretch.from_ns.max(from_ns));
            match taken.iter_mut().find(|(mark, _)| *mark == stretch.mark) {
                Some((_, ns)) => *ns += common_ns,
                None => taken.push((stretch.mark, common_ns)),
            }
        }
        let most = taken.into_iter().max_by_key(|&(_, ns)| ns);
        most.filter(|&(_, ns)| ns * 2 >= self.cell_ns)
            .map_or(REST, |(mark, _)| mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(cpu: u32, mark: char, from_ns: u64, to_ns: u64) -> Stretch {
        Stretch {
            cpu,
            mark,
            from_ns,
            to_ns,
        }
    }

    #[test]
    fn each_cell_shows_what_took_at_least_half_of_it() {
        let timeline = Timeline {
            from_ns: 1_000,
            cell_ns: 100,
            cells: 12,
            cpus: vec![0, 10],
        };
        let stretches = [
            // Before, in, and after the cells.
            stretch(0, 'c', 900, 1_350),
            stretch(0, 'c', 2_150, 9_000),
            // Two parts of one cell add up.
            stretch(10, 'g', 1_000, 1_030),
            stretch(10, 'g', 1_060, 1_090),
            // Less than half.
            stretch(10, 'g', 1_300, 1_349),
            stretch(10, 's', 1_500, 1_700),
            // A CPU that is not shown.
            stretch(3, 'x', 1_000, 2_000),
        ];
        assert_eq!(
            timeline.lines(&stretches),
            [
                "        0         10",
                "CPU 0   cccc.......c",
                "CPU 10  g....ss.....",
            ]
        );
    }

    #[test]
    fn an_empty_timeline_is_a_heading() {
        let timeline = Timeline {
            from_ns: 0,
            cell_ns: 1,
            cells: 0,
            cpus: Vec::new(),
        };
        assert_eq!(timeline.lines(&[]), [""]);
    }
}
