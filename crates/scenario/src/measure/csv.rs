//! A run over time as CSV. Each figure has a line of its own, so that no cell is empty.

use std::fmt::Display;
use std::io;

use super::Report;

/// Writes lines of one time.
struct Lines<W> {
    writer: W,
    time_ns: u64,
}

impl<W: io::Write> Lines<W> {
    fn line(&mut self, measure: &str, of: &str, value: impl Display) -> io::Result<()> {
        let time_ns = self.time_ns;
        writeln!(self.writer, "{time_ns},{measure},{},{value}", cell(of))
    }

    fn client(
        &mut self,
        name: &str,
        received_ns: u64,
        specified_ns: u64,
        quantum_ns: u64,
    ) -> io::Result<()> {
        let ahead_ns = received_ns as f64 - specified_ns as f64;
        self.line("received-ns", name, received_ns)?;
        self.line("specified-ns", name, specified_ns)?;
        self.line("error-quanta", name, ahead_ns / quantum_ns as f64)
    }
}

/// A name, in quotes if it must be.
fn cell(name: &str) -> String {
    match name.contains([',', '"']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    }
}

impl Report {
    /// Writes the time series as CSV: `time_ns,measure,of,value`. The measures are
    /// `received-ns`, `specified-ns` and `error-quanta` of each client,
    /// `relative-error-quanta` of each pair (`A/B`), and `waiting-threads` of the machine
    /// and of each pool, where the engine measures them. Without a series, the lines give
    /// the clients' figures at the end.
    ///
    /// # Errors
    ///
    /// The first error of the writer.
    pub fn write_csv(&self, mut writer: impl io::Write) -> io::Result<()> {
        writeln!(writer, "time_ns,measure,of,value")?;
        let time_ns = self.duration_ns;
        let mut lines = Lines { writer, time_ns };
        for point in &self.series {
            lines.time_ns = point.time_ns;
            let service = point.received_ns.iter().zip(&point.specified_ns);
            for (client, (received_ns, specified_ns)) in self.clients.iter().zip(service) {
                lines.client(&client.name, *received_ns, *specified_ns, self.quantum_ns)?;
            }
            for (pair, error) in self.pairs.iter().zip(&point.relative_errors) {
                let (first, second) = &pair.clients;
                lines.line("relative-error-quanta", &format!("{first}/{second}"), error)?;
            }
            if let Some(waiting) = point.waiting_threads {
                lines.line("waiting-threads", "", waiting)?;
            }
            for (pool, waiting) in self.pools.iter().zip(&point.waiting_in_pools) {
                lines.line("waiting-threads", &pool.name, waiting)?;
            }
        }
        if self.series.is_empty() {
            for client in &self.clients {
                let (received_ns, specified_ns) = (client.received_ns, client.specified_ns);
                lines.client(&client.name, received_ns, specified_ns, self.quantum_ns)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_out_of_its_cell() {
        assert_eq!(cell("A"), "A");
        assert_eq!(cell("a,b"), "\"a,b\"");
        assert_eq!(cell("a\"b"), "\"a\"\"b\"");
    }
}
