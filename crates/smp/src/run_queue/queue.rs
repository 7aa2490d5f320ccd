//! What one lock protects: tasks in lists, and which of them run.
//!
//! A queue is an array of lists; without levels the array has one list. Running
//! tasks stay in their list (2001, 3), so a search passes them.
//!
//! A list is in the order of its tasks' numbers, which decide among equals.
//! Therefore they must not depend on the layout. A task that comes to a queue
//! gets the lowest number so far, and keeps it while its rank changes. So it is
//! in the one list of Linux 2.4, where a task stays in its place until it
//! blocks.

use super::task::{Cpu, Task, TaskIndex};

/// A task's place in a queue, valid as long as the task is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueHandle(u32);

const END: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Entry {
    /// None exactly while the entry is free.
    task: Option<Task>,
    /// Whether the task runs, on the CPU that it names.
    running: bool,
    /// The list that the task is in.
    level: u8,
    /// The task's number, which orders lists.
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

/// What is known of a CPU.
#[derive(Clone, Debug)]
pub(super) struct CpuState {
    /// The task that runs, in this queue; none on an idle CPU.
    pub(super) current: Option<QueueHandle>,
    /// Idle since, by the caller's clock.
    pub(super) idle_since_ns: u64,
    /// Was told to decide anew and has not yet.
    pub(super) must_decide: bool,
    /// The task that runs is about to block and has been woken before.
    pub(super) recalled: bool,
    /// Address space in use: that of the last task.
    pub(super) mm: Option<u32>,
}

impl CpuState {
    const NEW: Self = Self {
        current: None,
        idle_since_ns: 0,
        must_decide: false,
        recalled: false,
        mm: None,
    };
}

/// Tasks, and the CPUs that take from here first: what one lock protects.
#[derive(Clone, Debug)]
pub struct Queue {
    entries: Vec<Entry>,
    free: Vec<u32>,
    lists: Vec<List>,
    /// Bit `l` is set exactly if `lists[l]` has a task.
    occupied: u64,
    /// The CPUs, from `first_cpu` up.
    cpus: Vec<CpuState>,
    first_cpu: u32,
    /// Recalculations, by the pool's clock, that all tasks here have been
    /// through.
    recalculations: u64,
    /// The lowest number given so far.
    lowest_order: i64,
}

impl Queue {
    /// An empty queue of so many CPUs, with lists for so many levels.
    pub(super) fn new(first_cpu: u32, cpus: u32, levels: usize) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            lists: vec![List::EMPTY; levels],
            occupied: 0,
            cpus: vec![CpuState::NEW; cpus as usize],
            first_cpu,
            recalculations: 0,
            lowest_order: 0,
        }
    }

    /// Tasks here, running tasks included.
    pub fn len(&self) -> u32 {
        (self.entries.len() - self.free.len()) as u32
    }

    /// Recalculations, by the pool's clock, that all tasks here have been
    /// through. A queue without waiting tasks catches up when it is next used.
    pub fn recalculations(&self) -> u64 {
        self.recalculations
    }

    /// Every task here and whether it runs, in no order.
    #[cfg(test)]
    pub fn tasks(&self) -> impl Iterator<Item = (&Task, bool)> {
        let entries = self.entries.iter();
        entries.filter_map(|entry| Some((entry.task.as_ref()?, entry.running)))
    }

    pub(super) fn cpu(&self, Cpu(cpu): Cpu) -> &CpuState {
        &self.cpus[(cpu - self.first_cpu) as usize]
    }

    pub(super) fn cpu_mut(&mut self, Cpu(cpu): Cpu) -> &mut CpuState {
        &mut self.cpus[(cpu - self.first_cpu) as usize]
    }

    pub(super) fn get(&self, QueueHandle(entry): QueueHandle) -> Option<&Task> {
        self.entries.get(entry as usize)?.task.as_ref()
    }

    pub(super) fn task(&self, handle: QueueHandle) -> &Task {
        self.get(handle)
            .expect("a handle is valid while its task is there")
    }

    /// For changes that leave the rank as it is; [`Queue::change`] is for others.
    pub(super) fn task_mut(&mut self, QueueHandle(entry): QueueHandle) -> &mut Task {
        let task = self.entries[entry as usize].task.as_mut();
        task.expect("a handle is valid while its task is there")
    }

    pub(super) fn runs(&self, QueueHandle(entry): QueueHandle) -> bool {
        self.entries[entry as usize].running
    }

    /// The number of a task: of equals the one with the lower goes first.
    pub(super) fn order(&self, QueueHandle(entry): QueueHandle) -> i64 {
        self.entries[entry as usize].order
    }

    /// Has a task stay that is about to block. Returns whether its CPU still has it.
    pub(super) fn recall(&mut self, cpu: Cpu, task: TaskIndex) -> bool {
        let current = self.cpu(cpu).current;
        let stays = current.is_some_and(|handle| self.task(handle).index == task);
        self.cpu_mut(cpu).recalled |= stays;
        stays
    }

    /// Adds a task that waits, before its equals.
    pub(super) fn insert(&mut self, task: Task) -> QueueHandle {
        self.lowest_order -= 1;
        let level = self.level_of(&task);
        let entry = Entry {
            task: Some(task),
            running: false,
            level: 0,
            order: self.lowest_order,
            previous: END,
            next: END,
        };
        let handle = match self.free.pop() {
            Some(free) => {
                self.entries[free as usize] = entry;
                QueueHandle(free)
            }
            None => {
                self.entries.push(entry);
                QueueHandle(self.entries.len() as u32 - 1)
            }
        };
        self.link(handle, level);
        handle
    }

    /// Takes a task out.
    pub(super) fn remove(&mut self, handle: QueueHandle) -> Task {
        self.unlink(handle);
        self.free.push(handle.0);
        let task = self.entries[handle.0 as usize].task.take();
        task.expect("a handle is valid while its task is there")
    }

    pub(super) fn set_running(&mut self, QueueHandle(entry): QueueHandle, running: bool) {
        self.entries[entry as usize].running = running;
    }

    /// Changes a task, and moves it to the list of its new rank. O(n) in the
    /// tasks of that level.
    pub(super) fn change(&mut self, handle: QueueHandle, change: impl FnOnce(&mut Task)) {
        change(self.task_mut(handle));
        let level = self.level_of(self.task(handle));
        if level != usize::from(self.entries[handle.0 as usize].level) {
            self.unlink(handle);
            self.link(handle, level);
        }
    }

    /// Puts all tasks through the recalculations that the clock shows and this
    /// queue has missed (2001, 2). Returns the tasks visited.
    pub(super) fn catch_up(&mut self, clock: u64) -> u32 {
        let missed = clock - std::mem::replace(&mut self.recalculations, clock);
        if missed == 0 {
            return 0;
        }
        let tasks = self.entries.iter_mut().filter_map(|e| e.task.as_mut());
        tasks.for_each(|task| task.recalculate(missed));
        if self.lists.len() > 1 {
            self.sort_into_levels();
        }
        self.len()
    }

    /// Puts every task into the level of its present rank. O(n log n).
    fn sort_into_levels(&mut self) {
        self.lists.fill(List::EMPTY);
        self.occupied = 0;
        let handles = (0..self.entries.len() as u32).map(QueueHandle);
        let mut handles: Vec<_> = handles.filter(|&h| self.get(h).is_some()).collect();
        handles.sort_unstable_by_key(|&handle| self.order(handle));
        for handle in handles {
            let level = self.level_of(self.task(handle));
            self.link(handle, level);
        }
    }

    /// The highest level below `level` that has a task.
    pub(super) fn occupied_below(&self, level: usize) -> Option<usize> {
        let below = self.occupied & ((1 << level) - 1);
        below.checked_ilog2().map(|level| level as usize)
    }

    /// The tasks of a list, first to last.
    pub(super) fn list(&self, level: usize) -> impl Iterator<Item = QueueHandle> {
        let some = |entry| (entry != END).then_some(QueueHandle(entry));
        let next = move |&QueueHandle(entry): &QueueHandle| some(self.entries[entry as usize].next);
        std::iter::successors(some(self.lists[level].first), next)
    }

    fn level_of(&self, task: &Task) -> usize {
        match self.lists.len() {
            1 => 0,
            _ => task.level(),
        }
    }

    /// Links an entry into a list where its number belongs. O(1) at either end,
    /// else O(n) in the entries before it.
    fn link(&mut self, QueueHandle(this): QueueHandle, level: usize) {
        let list = self.lists[level];
        let order = self.entries[this as usize].order;
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
        let entry = &mut self.entries[this as usize];
        entry.level = level as u8;
        entry.previous = previous;
        entry.next = next;
        match previous {
            END => self.lists[level].first = this,
            _ => self.entries[previous as usize].next = this,
        }
        match next {
            END => self.lists[level].last = this,
            _ => self.entries[next as usize].previous = this,
        }
        self.occupied |= 1 << level;
    }

    fn unlink(&mut self, QueueHandle(this): QueueHandle) {
        let Entry {
            level,
            previous,
            next,
            ..
        } = self.entries[this as usize];
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
