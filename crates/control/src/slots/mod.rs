//! The timetable: the calls of users, the journal's part, and the readers' file (2005, 2.1 to 2.5).
//!
//! ```text
//!   call -> decided on a draft -> journal -> table -> public file -> engine, programs
//!           may refuse            may refuse
//! ```
//!
//! The rules are `prorata_core::slots`'s. What ends within ten seconds is not journaled: a flush takes
//! milliseconds, and work that has some tens of them cannot wait for it (2005, 2.5.1).

mod call;
mod kept;
mod news;
mod open;
mod serve;

pub(crate) use call::{Call, SlotsCall, Wanted};
pub(crate) use kept::KeptTable;
pub(crate) use news::{Audience, News};
pub(crate) use open::OpenTable;

use std::collections::VecDeque;
use std::path::PathBuf;

/// The part of the daemon that has the timetable, if one is open.
pub(crate) struct Slots {
    /// Where the public file is.
    path: PathBuf,
    pub open: Option<OpenTable>,
    /// How many tables were open so far, which is the number of the last one.
    pub opened: u64,
    /// News that are not sent yet. The server sends them after each event, so there are at most as
    /// many as a table has slots; each reader has a limit of its own.
    news: VecDeque<News>,
}

impl Slots {
    /// No table yet; its file will have this path.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            open: None,
            opened: 0,
            news: VecDeque::new(),
        }
    }

    fn tell(&mut self, news: impl IntoIterator<Item = News>) {
        self.news.extend(news);
    }

    /// Wakes readers that wait for what changed. Those that keep boundaries outrank the daemon, so an
    /// answer goes first.
    pub fn wake_readers(&mut self) {
        if let Some(open) = &mut self.open {
            open.wake_readers();
        }
    }

    /// What is to be told now.
    pub fn take_news(&mut self) -> VecDeque<News> {
        std::mem::take(&mut self.news)
    }
}
