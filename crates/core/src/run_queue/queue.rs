//! What one lock protects: tasks in lists, and who runs.
//!
//! All layouts use the same structure. A queue is an array of lists; where
//! tasks are not sorted into levels the array has one list. Tasks that run
//! stay in their list (2001, 3), so that whoever looks for work passes them.
//!
//! A list is in the order in which its tasks came by their present rank. That
//! is the last word among equals, so it must not depend on the layout: with one
//! list as with levels, a task whose rank changes goes to the end.

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
    /// Of the next real-time task that comes to a queue of their own.
    next_since: u64,
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
            next_since: 0,
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

    /// Changes that may affect the rank need a `resort` after.
    pub(super) fn task_mut(&mut self, Slot(slot): Slot) -> &mut Task {
        let task = self.entries[slot as usize].task.as_mut();
        task.expect("a slot is good while its task stands there")
    }

    pub(super) fn runs(&self, Slot(slot): Slot) -> bool {
        self.entries[slot as usize].running
    }

    /// Adds a task that waits, at the end of its list.
    pub(super) fn insert(&mut self, task: Task, ranking: &impl Ranking) -> Slot {
        let level = self.level_of(&task, ranking);
        let load = ranking.load(&task);
        let slot = self.put(task, load);
        self.link_before(slot, END, level);
        slot
    }

    /// Adds a real-time task that waits, where its `since` says; at the end of
    /// its equals if it `gives_way`.
    pub(super) fn insert_since(&mut self, mut task: Task, gives_way: bool) -> Slot {
        if gives_way || task.since == 0 {
            self.next_since += 1;
            task.since = self.next_since;
        }
        let mut next = self.lists[0].first;
        while next != END && self.task(Slot(next)).since < task.since {
            next = self.entries[next as usize].next;
        }
        let slot = self.put(task, Some(0));
        self.link_before(slot, next, 0);
        slot
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

    /// A task's rank has changed: it goes to the end of its list.
    pub(super) fn resort(&mut self, slot: Slot, ranking: &impl Ranking) {
        let level = self.level_of(self.task(slot), ranking);
        self.unlink(slot);
        self.link_before(slot, END, level);
    }

    /// Changes a task, and sorts it anew if its rank is another one then.
    pub(super) fn change<R: Ranking, T>(
        &mut self,
        slot: Slot,
        ranking: &R,
        change: impl FnOnce(&mut Task) -> T,
    ) -> T {
        let before = ranking.rank(self.task(slot));
        let result = change(self.task_mut(slot));
        let load = ranking.load(self.task(slot));
        let before_load = core::mem::replace(&mut self.entries[slot.0 as usize].load, load);
        if load != before_load {
            self.load.remove(before_load);
            self.load.add(load);
        }
        if ranking.rank(self.task(slot)) != before {
            self.resort(slot, ranking);
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
        for slot in 0..self.entries.len() as u32 {
            if self.entries[slot as usize].task.is_some() {
                self.change(Slot(slot), ranking, &change);
            }
        }
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

    /// Puts everybody into its level by the present scale. Equals, who stand in
    /// one list before and after, stay in their order.
    fn lay_levels_anew(&mut self, ranking: &impl Ranking) {
        let mut before = [List::EMPTY; MAX_LEVELS];
        for (before, list) in before.iter_mut().zip(&mut self.lists) {
            *before = core::mem::replace(list, List::EMPTY);
        }
        self.occupied = 0;
        for list in before {
            let mut slot = list.first;
            while slot != END {
                let next = self.entries[slot as usize].next;
                let level = self.level_of(self.task(Slot(slot)), ranking);
                self.link_before(Slot(slot), END, level);
                slot = next;
            }
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

    fn put(&mut self, task: Task, load: Option<u32>) -> Slot {
        self.load.add(load);
        let entry = Entry {
            task: Some(task),
            running: false,
            level: 0,
            load,
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

    /// Links a slot into a list, before `next`.
    fn link_before(&mut self, Slot(slot): Slot, next: u32, level: usize) {
        let list = self.lists[level];
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
