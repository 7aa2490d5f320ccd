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
