//! Compiles steps to instructions. Refuses programs that cannot make sense: a mutex locked
//! twice or left locked at the end of a loop's body, a wait for a signal that is never
//! sent, an endless loop that takes no time.

use std::collections::BTreeMap;

use super::code::{Code, Entry, Instruction};
use super::limits;
use super::names::Names;
use crate::draw::Draw;
use crate::file::{
    COMPUTE, Distribution, KeyPath, Loop, Normal, Problem, Program, ScenarioError, Serve, Step,
    Trace, Varying,
};

type Result<T> = core::result::Result<T, ScenarioError>;

/// The names known to programs.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    pub(crate) programs: Names,
    pub(crate) mutexes: Names,
    pub(crate) pipes: Names,
    pub(crate) services: Names,
    pub(crate) signals: Names,
}

/// Compiles all programs and the built-in one.
pub(crate) fn compile(
    programs: &BTreeMap<String, Program>,
    words: &mut Vocabulary,
) -> Result<Code> {
    let root = KeyPath::default().key("program");
    let mut code = Code::default();
    for (name, program) in programs {
        words.programs.number(name);
        declare(&program.steps, words);
    }
    let has_own = words.programs.get(COMPUTE).is_some();
    words.programs.number(COMPUTE);
    for (name, program) in programs {
        let place = root.key(name).key("steps");
        let mut compiler = Compiler {
            words,
            code: &mut code,
            registers: 0,
            held: Vec::new(),
            serving: false,
            steps: 0,
        };
        let start = compiler.code.instructions.len() as u32;
        compiler.block(&program.steps, &place)?;
        compiler.emit(Instruction::Exit);
        if !compiler.held.is_empty() {
            return Err(place.problem(Problem::Step(
                "the program ends with a mutex locked: unlock it before the end",
            )));
        }
        let registers = compiler.registers;
        code.entries.push(Entry { start, registers });
    }
    if !has_own {
        built_in(&mut code);
    }
    Ok(code)
}

/// The built-in program. It computes for ever, in the longest steps.
fn built_in(code: &mut Code) {
    let start = code.instructions.len() as u32;
    let draw = code.draws.len() as u32;
    code.draws.push(Draw::Fixed(crate::file::Time::MAX.0));
    code.instructions
        .extend([Instruction::Compute(draw), Instruction::Jump(start)]);
    code.entries.push(Entry {
        start,
        registers: 0,
    });
}

/// Services and signals need no declaration: steps that serve or signal create them.
fn declare(steps: &[Step], words: &mut Vocabulary) {
    for step in steps {
        match step {
            Step::Signal(name) => {
                words.signals.number(name);
            }
            Step::Serve(serve) => {
                words.services.number(&serve.service);
                declare(&serve.steps, words);
            }
            Step::Loop(repeat) => declare(&repeat.steps, words),
            _ => {}
        }
    }
}

struct Compiler<'a> {
    words: &'a Vocabulary,
    code: &'a mut Code,
    /// Registers in use so far.
    registers: u8,
    /// Mutexes held at this point, in the order of locking.
    held: Vec<u32>,
    /// Whether this point lies between a call and its reply.
    serving: bool,
    /// Steps of the program so far.
    steps: usize,
}

impl Compiler<'_> {
    fn emit(&mut self, instruction: Instruction) {
        self.code.instructions.push(instruction);
    }

    fn here(&self) -> u32 {
        self.code.instructions.len() as u32
    }

    fn register(&mut self, place: &KeyPath) -> Result<u8> {
        let register = self.registers;
        if u32::from(register) >= limits::REGISTERS {
            return Err(place.problem(limits::too_many(
                "the number of counted loops and traces in a program",
                limits::REGISTERS + 1,
                limits::REGISTERS,
            )));
        }
        self.registers += 1;
        Ok(register)
    }

    fn block(&mut self, steps: &[Step], place: &KeyPath) -> Result<()> {
        if steps.is_empty() {
            return Err(place.problem(Problem::Step("there are no steps: write at least one")));
        }
        self.steps += steps.len();
        limits::at_most(
            "the number of steps in a program",
            self.steps,
            limits::STEPS,
            place,
        )?;
        let steps = steps.iter().enumerate();
        steps
            .into_iter()
            .try_for_each(|(i, step)| self.step(step, &place.index(i)))
    }

    fn step(&mut self, step: &Step, place: &KeyPath) -> Result<()> {
        let words = self.words;
        let instruction = match step {
            Step::Compute(time) => Instruction::Compute(self.draw(time, &place.key("compute"))?),
            Step::Sleep(time) => Instruction::Sleep(self.draw(time, &place.key("sleep"))?),
            Step::Block(block) => Instruction::Block {
                draw: self.draw(&block.time, &place.key("block").key("for"))?,
                resource: block.resource,
            },
            Step::Wait(name) => Instruction::Wait(words.signals.find(name, &place.key("wait"))?),
            Step::Signal(name) => {
                Instruction::Signal(words.signals.find(name, &place.key("signal"))?)
            }
            Step::Lock(name) => self.lock(name, &place.key("lock"))?,
            Step::Unlock(name) => self.unlock(name, &place.key("unlock"))?,
            Step::Call(name) => Instruction::Call(words.services.find(name, &place.key("call"))?),
            Step::Serve(serve) => return self.serve(serve, &place.key("serve")),
            Step::Send(name) => Instruction::Send(words.pipes.find(name, &place.key("send"))?),
            Step::Receive(name) => {
                Instruction::Receive(words.pipes.find(name, &place.key("receive"))?)
            }
            Step::Yield => Instruction::Yield,
            Step::Fork(name) => Instruction::Fork(words.programs.find(name, &place.key("fork"))?),
            Step::Exit => Instruction::Exit,
            Step::Loop(repeat) => return self.repeat(repeat, &place.key("loop")),
        };
        self.emit(instruction);
        Ok(())
    }

    fn lock(&mut self, name: &str, place: &KeyPath) -> Result<Instruction> {
        let mutex = self.words.mutexes.find(name, place)?;
        if self.held.contains(&mutex) {
            return Err(place.problem(Problem::Step(
                "the thread holds this mutex here: unlock it before locking it again",
            )));
        }
        self.held.push(mutex);
        Ok(Instruction::Lock(mutex))
    }

    fn unlock(&mut self, name: &str, place: &KeyPath) -> Result<Instruction> {
        let mutex = self.words.mutexes.find(name, place)?;
        let Some(position) = self.held.iter().position(|held| *held == mutex) else {
            return Err(place.problem(Problem::Step(
                "the thread does not hold this mutex here: lock it first",
            )));
        };
        self.held.remove(position);
        Ok(Instruction::Unlock(mutex))
    }

    fn serve(&mut self, serve: &Serve, place: &KeyPath) -> Result<()> {
        let service = self
            .words
            .services
            .find(&serve.service, &place.key("service"))?;
        if self.serving {
            return Err(place.problem(Problem::Step(
                "a call is being served here: one thread serves one call at a time",
            )));
        }
        self.serving = true;
        self.emit(Instruction::Accept(service));
        self.body(&serve.steps, &place.key("steps"))?;
        self.emit(Instruction::Reply);
        self.serving = false;
        Ok(())
    }

    fn repeat(&mut self, repeat: &Loop, place: &KeyPath) -> Result<()> {
        let steps_place = place.key("steps");
        let (times, chance, until) = (repeat.times, repeat.chance, repeat.until);
        match (times, chance, until) {
            (Some(_), Some(_), _) => {
                return Err(place.key("chance").problem(Problem::Step(
                    "a loop has a number of times or a chance: leave one of them out",
                )));
            }
            (Some(_), None, Some(_)) | (None, Some(_), Some(_)) => {
                return Err(place.key("until").problem(Problem::Step(
                    "a loop with a time has neither a number nor a chance: leave one of them out",
                )));
            }
            (None, None, Some(until)) => {
                self.check_takes_time(repeat, place)?;
                let start = self.here();
                self.code.draws.push(Draw::Fixed(until.0));
                let draw = self.code.draws.len() as u32 - 1;
                self.emit(Instruction::Past { draw, to: start });
                self.body(&repeat.steps, &steps_place)?;
                self.emit(Instruction::Jump(start));
                let to = self.here();
                self.code.instructions[start as usize] = Instruction::Past { draw, to };
            }
            (None, Some(chance), None) => {
                // Not quite one, in 2^32.
                let highest = f64::from(u32::MAX) / 2f64.powi(32);
                limits::within("chance", chance, 0.0, highest, &place.key("chance"))?;
                let start = self.here();
                let chance = (chance * 2f64.powi(32)) as u32;
                self.emit(Instruction::Unless { chance, to: start });
                self.body(&repeat.steps, &steps_place)?;
                self.emit(Instruction::Jump(start));
                let to = self.here();
                self.code.instructions[start as usize] = Instruction::Unless { chance, to };
            }
            (None, None, None) => {
                self.check_takes_time(repeat, place)?;
                let start = self.here();
                self.body(&repeat.steps, &steps_place)?;
                self.emit(Instruction::Jump(start));
            }
            (Some(times), None, None) => {
                limits::within("times", times, 1, u32::MAX, &place.key("times"))?;
                let register = self.register(place)?;
                self.emit(Instruction::Set {
                    register,
                    to: times,
                });
                let to = self.here();
                self.body(&repeat.steps, &steps_place)?;
                self.emit(Instruction::Again { register, to });
            }
        }
        Ok(())
    }

    fn check_takes_time(&self, repeat: &Loop, place: &KeyPath) -> Result<()> {
        if takes_time(&repeat.steps) {
            return Ok(());
        }
        Err(place.problem(Problem::Step(
            "an endless loop takes no time: put a step into it that computes, sleeps or waits",
        )))
    }

    /// Steps that may repeat, and so must leave mutexes as they found them.
    fn body(&mut self, steps: &[Step], place: &KeyPath) -> Result<()> {
        let held = self.held.clone();
        self.block(steps, place)?;
        if self.held == held {
            return Ok(());
        }
        Err(place.problem(Problem::Step(
            "the steps do not leave the mutexes as they found them: unlock inside what is locked inside",
        )))
    }

    fn draw(&mut self, distribution: &Distribution, place: &KeyPath) -> Result<u32> {
        let draw = match distribution {
            Distribution::Fixed(time) => Draw::Fixed(time.0),
            Distribution::Varying(Varying::Uniform(low, high)) => {
                if low > high {
                    return Err(place.problem(Problem::Range {
                        what: "the shortest time",
                        is: low.to_string(),
                        low: "0s".to_owned(),
                        high: format!("the longest, {high}"),
                    }));
                }
                Draw::Uniform(low.0, high.0)
            }
            Distribution::Varying(Varying::Exponential(mean)) => Draw::Exponential(mean.0 as f64),
            Distribution::Varying(Varying::Normal(Normal { mean, deviation })) => {
                Draw::Normal(mean.0 as f64, deviation.0 as f64)
            }
            Distribution::Varying(Varying::Trace(Trace::File(path))) => {
                return Err(place.problem(Problem::TraceNotRead(path.clone())));
            }
            Distribution::Varying(Varying::Trace(Trace::Times(times))) => {
                limits::within(
                    "the length of a trace",
                    times.len() as u32,
                    1,
                    limits::TRACE,
                    place,
                )?;
                Draw::Trace {
                    times_ns: times.iter().map(|time| time.0).collect(),
                    register: self.register(place)?,
                }
            }
        };
        self.code.draws.push(draw);
        Ok(self.code.draws.len() as u32 - 1)
    }
}

/// Whether these steps can take time.
fn takes_time(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Signal(_) | Step::Unlock(_) | Step::Yield | Step::Fork(_) => false,
        Step::Loop(repeat) => takes_time(&repeat.steps),
        _ => true,
    })
}
