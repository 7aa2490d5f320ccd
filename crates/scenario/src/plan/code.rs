//! Compiled programs: one flat list of instructions.

use serde::{Deserialize, Serialize};

use crate::draw::Draw;
use crate::file::Resource;

/// The next action of a thread. Numbers index the tables of a [`super::Plan`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names explain the rest")]
pub enum Instruction {
    /// Uses a drawn amount of CPU time.
    Compute(u32),
    /// Sleeps for a drawn time.
    Sleep(u32),
    /// Sleeps in the kernel.
    Block {
        /// For how long.
        draw: u32,
        resource: Resource,
    },
    Wait(u32),
    /// Wakes a thread that waits for a signal.
    Signal(u32),
    /// Acquires a mutex.
    Lock(u32),
    /// Releases a mutex.
    Unlock(u32),
    Call(u32),
    /// Takes a call of this service, or waits for one.
    Accept(u32),
    /// Ends the call that was accepted last.
    Reply,
    /// Puts a message into a pipe.
    Send(u32),
    /// Takes a message out of a pipe.
    Receive(u32),
    /// Gives up the rest of the turn.
    Yield,
    /// Starts a thread with this program.
    Fork(u32),
    /// Ends the thread.
    Exit,
    /// Sets a register of the thread.
    Set {
        register: u8,
        /// Its new value.
        to: u32,
    },
    /// Decrements a register, and jumps unless it is zero then.
    Again {
        register: u8,
        to: u32,
    },
    Jump(u32),
    /// Jumps unless a draw of 32 bits from the thread's stream is below a chance.
    Unless {
        /// In 2^32.
        chance: u32,
        to: u32,
    },
    /// Jumps once a time of the scenario has come.
    Past {
        /// A fixed time.
        draw: u32,
        to: u32,
    },
}

/// The beginning of a program and the needs of its threads.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// First instruction.
    pub start: u32,
    /// Number of registers.
    pub registers: u8,
}

/// All programs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Code {
    /// The instructions of all programs.
    pub instructions: Vec<Instruction>,
    /// The sources of durations.
    pub draws: Vec<Draw>,
    /// By program.
    pub entries: Vec<Entry>,
}

impl Code {
    /// Programs whose threads, or forked threads, take calls of a service.
    pub(crate) fn servers(&self, service: u32) -> Vec<u32> {
        let mut servers: Vec<u32> = Vec::new();
        loop {
            let before = servers.len();
            for program in 0..self.entries.len() as u32 {
                let serves = |instruction: &Instruction| match instruction {
                    Instruction::Accept(accepted) => *accepted == service,
                    Instruction::Fork(forked) => servers.contains(forked),
                    _ => false,
                };
                if !servers.contains(&program) && self.of(program).iter().any(serves) {
                    servers.push(program);
                }
            }
            if servers.len() == before {
                return servers;
            }
        }
    }

    /// The instructions of a program; they are contiguous.
    fn of(&self, program: u32) -> &[Instruction] {
        let start = self.entries[program as usize].start as usize;
        let starts = self.entries.iter().map(|entry| entry.start as usize);
        let end = starts.filter(|other| *other > start).min();
        &self.instructions[start..end.unwrap_or(self.instructions.len())]
    }
}
