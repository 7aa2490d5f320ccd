//! From the core's notices to news for users (2005, 2.4.2 and 6).

use prorata_core::ids::ClientId;
use prorata_core::slots::claim::{Owner, Schedulee};
use prorata_core::slots::geometry::Cell;
use prorata_core::slots::notice::{Notice, Why};
use prorata_protocol::slots::{Ended, Runs, SlotsNews};

/// Whom news concern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Audience {
    /// The owner's user, and those that see all.
    User(u32),
    /// All that asked for slots that become free.
    WantsFree,
    /// All that watch.
    All,
}

/// News and those to be told.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct News {
    pub audience: Audience,
    pub news: SlotsNews,
}

impl News {
    /// Of a claim that has ended.
    pub fn ended(
        notice: &Notice,
        name_of: &dyn Fn(Owner) -> String,
        client_name: &dyn Fn(ClientId) -> String,
    ) -> Self {
        let (why, by) = match notice.why {
            Why::Preempted(by) => (Ended::Preempted, Some(by)),
            Why::Shared(by) => (Ended::Shared, Some(by)),
            Why::Reserved => (Ended::Reserved, None),
            Why::Freed(by) => (Ended::Freed, Some(by)),
            Why::Expired => (Ended::Expired, None),
            Why::ScheduleeEnded => (Ended::ScheduleeEnded, None),
        };
        News {
            audience: Audience::User(notice.claim.owner.user),
            news: SlotsNews::Ended {
                cell: notice.cell,
                runs: runs(notice.claim.schedulee, client_name),
                level: notice.claim.level,
                why,
                by: by.map(name_of),
            },
        }
    }

    /// Of slots that became free; none without any.
    pub fn freed(cells: Vec<Cell>) -> Option<Self> {
        (!cells.is_empty()).then_some(News {
            audience: Audience::WantsFree,
            news: SlotsNews::Freed(cells),
        })
    }
}

fn runs(schedulee: Schedulee, client_name: &dyn Fn(ClientId) -> String) -> Runs {
    match schedulee {
        Schedulee::Client(client) => Runs::Client(client_name(client)),
        Schedulee::Process { pid, .. } => Runs::Process(pid),
        Schedulee::Thread { tid, .. } => Runs::Thread(tid),
    }
}
