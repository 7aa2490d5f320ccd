//! Programs, made ready to run: one flat list of instructions.

use crate::draw::Draw;

/// What a thread does next. Numbers index the tables of a [`super::Plan`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Instruction {
    Compute(u32),
    Sleep(u32),
    Wait(u32),
    Signal(u32),
    Lock(u32),
    Unlock(u32),
    Call(u32),
    /// Takes a call of this service, or waits for one.
    Accept(u32),
    /// Ends the call that was accepted last.
    Reply,
    Send(u32),
    Receive(u32),
    Yield,
    /// Starts a thread with this program.
    Fork(u32),
    Exit,
    /// Sets a register of the thread.
    Set {
        register: u8,
        to: u32,
    },
    /// Takes one off a register, and goes to an instruction unless that
    /// leaves zero.
    Again {
        register: u8,
        to: u32,
    },
    Jump(u32),
}

/// Where a program begins and what its threads need.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Entry {
    /// First instruction.
    pub(crate) start: u32,
    /// Number of registers.
    pub(crate) registers: u8,
}

/// All programs.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Code {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) draws: Vec<Draw>,
    /// By program.
    pub(crate) entries: Vec<Entry>,
}

impl Code {
    /// Programs whose threads, or the threads that they fork, take calls of a
    /// service.
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

    /// The instructions of a program, which stand in one piece.
    fn of(&self, program: u32) -> &[Instruction] {
        let start = self.entries[program as usize].start as usize;
        let starts = self.entries.iter().map(|entry| entry.start as usize);
        let end = starts.filter(|other| *other > start).min();
        &self.instructions[start..end.unwrap_or(self.instructions.len())]
    }
}
