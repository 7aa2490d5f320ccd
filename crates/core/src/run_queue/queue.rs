//! What one lock protects: tasks in lists, and who runs.
//!
//! All layouts use the same structure. A queue is an array of lists; where
//! tasks are not sorted into levels the array has one list. Tasks that run
//! stay in their list (2001, 3), so that whoever looks for work passes them.
//!
//! A list is in the order of its tasks' numbers, which only grow at its end and
//! fall at its head. They are the last word among equals, so they must not depend
//! on the layout: with one list as with levels a task has the same number. Where
//! who came last goes first ([`Ranking::LATEST_FIRST`]) it has the lowest of all
//! when it comes, and keeps it while its rank changes: the one list of Linux 2.4,
//! in which a task stays where it is until it blocks. Else it has the highest,
//! and anew with each other rank. Who gives way to its equals has the highest
//! then in any case.

use alloc::vec;
use alloc::vec::Vec;

use super::load::Load;
use super::ranking::{MAX_LEVELS, NOBODY, Rank, Ranking, Scale};
use super::task::{Cpu, Task, TaskIndex};

/// A place in a queue, good as long as the task stands there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(u32);

const END: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Entry {
    /// None exactly while the slot is free.
    task: Option<Task>,
    /// Whether it runs, on the CPU that the task names.
    running: bool,
    /// The list that it is in.
    level: u8,
    /// What it counts for in the load of the queue.
    load: Option<u32>,
    /// Its number, which orders lists.
    order: i64,
    previous: u32,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

impl List {
    const EMPTY: Self = Self {
        first: END,
        last: END,
    };
}

/// Where among its equals a task comes to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AmongEquals {
    /// It wakes.
    First,
    /// It ran, and another is better.
    AsBefore,
    /// It gives way.
    Last,
}

/// What is known of a CPU.
#[derive(Clone, Debug)]
pub(super) struct CpuState {
    /// Who runs, in this queue; idle without.
    pub(super) current: Option<Slot>,
    /// Idle since, by the caller's clock.
    pub(super) idle_since_ns: u64,
    /// Was told to decide anew and has not yet.
    pub(super) must_decide: bool,
    /// Address space in use: that of the last task.
    pub(super) mm: Option<u32>,
}

impl CpuState {
    const NEW: Self = Self {
        current: None,
        idle_since_ns: 0,
        must_decide: false,
        mm: None,
    };
}

/// Tasks, and the CPUs that take from here first: what one lock protects.
#[derive(Clone, Debug)]
pub struct Queue {
    entries: Vec<Entry>,
    /// Free slots.
    free: Vec<u32>,
    lists: Vec<List>,
    /// Bit `l` is set exactly if `lists[l]` holds anybody.
    occupied: u64,
    /// Tasks that do not run.
    waiting: u32,
    load: Load,
    /// The CPUs, from `first_cpu` up.
    cpus: Vec<CpuState>,
    first_cpu: u32,
    /// The clock's number of recalculations that all tasks here have been
    /// through, if the ranking has any.
    pub(super) recalculations: u64,
    /// Where the levels lie, if the ranking moves them.
    pub(super) scale: Scale,
    /// The lowest number given so far, and the highest.
    lowest_order: i64,
    highest_order: i64,
}

impl Queue {
    /// An empty queue of so many CPUs, with lists for so many levels.
    pub(super) fn new(first_cpu: u32, cpus: u32, levels: usize) -> Self {
        assert!((1..=MAX_LEVELS).contains(&levels));
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            lists: vec![List::EMPTY; levels],
            occupied: 0,
            waiting: 0,
            load: Load::default(),
            cpus: vec![CpuState::NEW; cpus as usize],
            first_cpu,
            recalculations: 0,
            scale: Scale::default(),
            lowest_order: 0,
            highest_order: 0,
        }
    }

    /// Tasks that wait here.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Tasks here, those that run included.
    pub fn len(&self) -> u32 {
        (self.entries.len() - self.free.len()) as u32
    }

    /// Whether nobody is here.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What its tasks count for, those that run included.
    pub(super) fn load(&self) -> Load {
        self.load
    }

    /// Recalculations, by its pool's clock, that everybody here has been
    /// through. A queue where nobody waits catches up when it is next used.
    pub fn recalculations(&self) -> u64 {
        self.recalculations
    }

    /// Everybody here, and whether it runs, in no order.
    pub fn tasks(&self) -> impl Iterator<Item = (&Task, bool)> {
        let entries = self.entries.iter();
        entries.filter_map(|entry| Some((entry.task.as_ref()?, entry.running)))
    }

    /// Who runs on one of this queue's CPUs.
    pub fn current(&self, cpu: Cpu) -> Option<&Task> {
        Some(self.task(self.cpu(cpu).current?))
    }

    pub(super) fn cpu(&self, Cpu(cpu): Cpu) -> &CpuState {
        &self.cpus[(cpu - self.first_cpu) as usize]
    }

    pub(super) fn cpu_mut(&mut self, Cpu(cpu): Cpu) -> &mut CpuState {
        &mut self.cpus[(cpu - self.first_cpu) as usize]
    }

    /// Where a task stands. O(n).
    pub(super) fn find(&self, index: TaskIndex) -> Option<Slot> {
        let found = |entry: &Entry| entry.task.as_ref().is_some_and(|task| task.index == index);
        let place = self.entries.iter().position(found)?;
        Some(Slot(place as u32))
    }

    pub(super) fn get(&self, Slot(slot): Slot) -> Option<&Task> {
        self.entries.get(slot as usize)?.task.as_ref()
    }

    pub(super) fn task(&self, Slot(slot): Slot) -> &Task {
        let task = self.entries[slot as usize].task.as_ref();
        task.expect("a slot is good while its task stands there")
    }

    /// Changes that may affect the rank go through `change`, or `give_way` follows.
    pub(super) fn task_mut(&mut self, Slot(slot): Slot) -> &mut Task {
        let task = self.entries[slot as usize].task.as_mut();
        task.expect("a slot is good while its task stands there")
    }

    pub(super) fn runs(&self, Slot(slot): Slot) -> bool {
        self.entries[slot as usize].running
    }

    /// Adds a task that waits, before or behind its equals, as the ranking has it.
    pub(super) fn insert<R: Ranking>(&mut self, task: Task, ranking: &R) -> Slot {
        let level = self.level_of(&task, ranking);
        let load = ranking.load(&task);
        let order = match R::LATEST_FIRST {
            true => self.before_all(),
            false => self.behind_all(),
        };
        let slot = self.put(task, load, order);
        self.link(slot, level);
        slot
    }

    /// Adds a task to a queue of real-time tasks that wait. There it has the same
    /// number each time, until it blocks or gives way.
    pub(super) fn insert_real_time(&mut self, mut task: Task, among: AmongEquals) -> Slot {
        match among {
            AmongEquals::First => task.real_time_order = self.before_all(),
            AmongEquals::AsBefore => {}
            AmongEquals::Last => task.real_time_order = self.behind_all(),
        }
        let order = task.real_time_order;
        let slot = self.put(task, Some(0), order);
        self.link(slot, 0);
        slot
    }

    fn before_all(&mut self) -> i64 {
        self.lowest_order -= 1;
        self.lowest_order
    }

    fn behind_all(&mut self) -> i64 {
        self.highest_order += 1;
        self.highest_order
    }

    /// The number of a task: of equals the one with the lower goes first.
    pub(super) fn order(&self, Slot(slot): Slot) -> i64 {
        self.entries[slot as usize].order
    }

    /// Takes a task out.
    pub(super) fn remove(&mut self, slot: Slot) -> Task {
        self.unlink(slot);
        let entry = &mut self.entries[slot.0 as usize];
        self.load.remove(entry.load);
        if !entry.running {
            self.waiting -= 1;
        }
        self.free.push(slot.0);
        let task = entry.task.take();
        task.expect("a slot is good while its task stands there")
    }

    pub(super) fn set_running(&mut self, slot: Slot, running: bool) {
        let entry = &mut self.entries[slot.0 as usize];
        if entry.running != running {
            entry.running = running;
            self.waiting = if running {
                self.waiting - 1
            } else {
                self.waiting + 1
            };
        }
    }

    /// A task goes behind its equals.
    pub(super) fn give_way(&mut self, slot: Slot, ranking: &impl Ranking) {
        self.entries[slot.0 as usize].order = self.behind_all();
        let level = self.level_of(self.task(slot), ranking);
        self.unlink(slot);
        self.link(slot, level);
    }

    /// A task's rank has changed. O(n) in the tasks of its level where it keeps
    /// its number.
    fn resort<R: Ranking>(&mut self, slot: Slot, ranking: &R) {
        if !R::LATEST_FIRST {
            return self.give_way(slot, ranking);
        }
        let level = self.level_of(self.task(slot), ranking);
        if level != usize::from(self.entries[slot.0 as usize].level) {
            self.unlink(slot);
            self.link(slot, level);
        }
    }

    /// Changes a task, and sorts it anew if its rank is another one then.
    pub(super) fn change<R: Ranking, T>(
        &mut self,
        slot: Slot,
        ranking: &R,
        change: impl FnOnce(&mut Task) -> T,
    ) -> T {
        let before = ranking.rank(self.task(slot));
        let result = self.change_unsorted(slot, ranking, change);
        if ranking.rank(self.task(slot)) != before {
            self.resort(slot, ranking);
        }
        result
    }

    fn change_unsorted<T>(
        &mut self,
        slot: Slot,
        ranking: &impl Ranking,
        change: impl FnOnce(&mut Task) -> T,
    ) -> T {
        let result = change(self.task_mut(slot));
        let load = ranking.load(self.task(slot));
        let before_load = core::mem::replace(&mut self.entries[slot.0 as usize].load, load);
        if load != before_load {
            self.load.remove(before_load);
            self.load.add(load);
        }
        result
    }

    /// Puts everybody through the recalculations that the clock shows and this
    /// queue has missed (2001, 2). Returns the tasks visited.
    pub(super) fn catch_up<R: Ranking>(&mut self, ranking: &R, clock: u64) -> u32 {
        if !R::RECALCULATES || self.recalculations == clock {
            return 0;
        }
        let missed = clock - self.recalculations;
        self.recalculations = clock;
        self.change_all(ranking, |task| ranking.recalculate(task, missed));
        self.len()
    }

    /// The same to everybody here.
    pub(super) fn change_all<R: Ranking>(&mut self, ranking: &R, change: impl Fn(&mut Task)) {
        for slot in self.slots() {
            match R::LATEST_FIRST {
                // Sorted below, all at once.
                true => self.change_unsorted(slot, ranking, &change),
                false => self.change(slot, ranking, &change),
            }
        }
        if R::LATEST_FIRST && self.lists.len() > 1 {
            self.lay_levels_anew(ranking);
        }
    }

    /// Everybody here, in no order.
    fn slots(&self) -> Vec<Slot> {
        let slots = (0..self.entries.len() as u32).map(Slot);
        slots.filter(|&slot| self.get(slot).is_some()).collect()
    }

    /// Lays the levels anew around everybody here, if who was chosen stands in
    /// the lowest. Returns the tasks visited.
    pub(super) fn rescale_if_lowest(
        &mut self,
        chosen: Option<Slot>,
        ranking: &impl Ranking,
    ) -> u32 {
        let level = chosen.map(|Slot(slot)| self.entries[slot as usize].level);
        if level != Some(0) {
            return 0;
        }
        let ranks = self.tasks().map(|(task, _)| ranking.rank(task));
        let (lowest, highest) = ranks.fold((Rank::MAX, NOBODY), |(low, high), rank| {
            (low.min(rank), high.max(rank))
        });
        let Some(scale) = ranking.rescale(lowest, highest) else {
            return 0;
        };
        self.scale = scale;
        self.lay_levels_anew(ranking);
        self.len()
    }

    /// Puts everybody into its level by its present rank and the present scale.
    /// O(n log n).
    fn lay_levels_anew(&mut self, ranking: &impl Ranking) {
        self.lists.fill(List::EMPTY);
        self.occupied = 0;
        let mut slots = self.slots();
        slots.sort_unstable_by_key(|&slot| self.order(slot));
        for slot in slots {
            let level = self.level_of(self.task(slot), ranking);
            self.link(slot, level);
        }
    }

    /// The highest level up to `level` that holds anybody.
    pub(super) fn occupied_level(&self, level: usize) -> Option<usize> {
        let upto = self.occupied & (u64::MAX >> (MAX_LEVELS - 1 - level));
        upto.checked_ilog2().map(|level| level as usize)
    }

    /// Those of a list, first to last.
    pub(super) fn list(&self, level: usize) -> impl Iterator<Item = Slot> {
        let some = |slot| (slot != END).then_some(Slot(slot));
        let next = move |&Slot(slot): &Slot| some(self.entries[slot as usize].next);
        core::iter::successors(some(self.lists[level].first), next)
    }

    fn level_of(&self, task: &Task, ranking: &impl Ranking) -> usize {
        match self.lists.len() {
            1 => 0,
            _ => ranking.level(task, &self.scale),
        }
    }

    fn put(&mut self, task: Task, load: Option<u32>, order: i64) -> Slot {
        self.load.add(load);
        let entry = Entry {
            task: Some(task),
            running: false,
            level: 0,
            load,
            order,
            previous: END,
            next: END,
        };
        self.waiting += 1;
        match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                Slot(slot)
            }
            None => {
                self.entries.push(entry);
                Slot(self.entries.len() as u32 - 1)
            }
        }
    }

    /// Links a slot into a list where its number belongs. O(1) at either end, else
    /// O(n) in those before it.
    fn link(&mut self, Slot(slot): Slot, level: usize) {
        let list = self.lists[level];
        let order = self.entries[slot as usize].order;
        let is_before = |other: u32| self.entries[other as usize].order < order;
        let next = match list.last {
            last if last == END || is_before(last) => END,
            _ => {
                let mut next = list.first;
                while is_before(next) {
                    next = self.entries[next as usize].next;
                }
                next
            }
        };
        let previous = match next {
            END => list.last,
            _ => self.entries[next as usize].previous,
        };
        let entry = &mut self.entries[slot as usize];
        entry.level = level as u8;
        entry.previous = previous;
        entry.next = next;
        match previous {
            END => self.lists[level].first = slot,
            _ => self.entries[previous as usize].next = slot,
        }
        match next {
            END => self.lists[level].last = slot,
            _ => self.entries[next as usize].previous = slot,
        }
        self.occupied |= 1 << level;
    }

    fn unlink(&mut self, Slot(slot): Slot) {
        let Entry {
            level,
            previous,
            next,
            ..
        } = self.entries[slot as usize];
        let level = usize::from(level);
        match previous {
            END => self.lists[level].first = next,
            _ => self.entries[previous as usize].next = next,
        }
        match next {
            END => self.lists[level].last = previous,
            _ => self.entries[next as usize].previous = previous,
        }
        if self.lists[level].first == END {
            self.occupied &= !(1 << level);
        }
    }
}
