//! Programs of the system in the parts of a scenario's clients.

use std::fs::File;
use std::io;

/// A program that every client's process runs instead of the program in the scenario.
/// It begins when the client starts.
#[derive(Debug)]
pub struct Cast {
    /// The program's file, or its name to be looked for in `PATH`.
    pub program: String,
    /// The program's name for itself, and its arguments.
    pub arguments: Vec<String>,
    /// Where output and errors of each client's program go, by client.
    pub outputs: Vec<File>,
}

impl Cast {
    /// The arguments that tell a client's process what to become.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        let arguments = self.arguments.iter().map(String::as_str);
        std::iter::once(self.program.as_str()).chain(arguments)
    }

    /// The output of one client's program.
    pub(crate) fn output(&self, client: u32) -> io::Result<File> {
        let output = self.outputs.get(client as usize);
        output.ok_or(io::ErrorKind::NotFound)?.try_clone()
    }
}
