//! Why a request is refused: one sentence each, with the input, the rule and
//! the fix.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use prorata_core::ledger::{BadMode, LedgerError};
use prorata_core::slots::admission::CLASSES;
use prorata_core::slots::error::SlotError;
use prorata_core::slots::level::Level;
use prorata_protocol::{
    HybridChoice, MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES, MOST_EVENTS, PROTOCOL_VERSION, PolicyName,
};

use crate::engine::EngineError;
use crate::journal::JournalError;
use crate::peer::PeerError;
use crate::state::{MAX_QUANTUM_NS, MIN_QUANTUM_NS};

/// Why a daemon of an ordinary user does not manage what users run.
pub const USERS_NEED_ROOT: &str =
    "only root's daemon can manage what users run: start it as root, or leave --users out";

/// Why a request is refused; nothing has changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Mode(#[from] BadMode),
    #[error(transparent)]
    Peer(#[from] PeerError),

    #[error("a request of {0} bytes is too long: the limit is {MAX_REQUEST_BYTES} bytes")]
    TooLong(u32),
    #[error("the request was not complete within {0:?}: send it whole")]
    TooSlow(Duration),
    #[error("the request cannot be understood ({0}): use the prorata command of this version")]
    Malformed(String),
    #[error(
        "this daemon speaks protocol {PROTOCOL_VERSION} and was asked in protocol {0}: end it \
         with SIGTERM, its programs will be found again by the next one"
    )]
    Version(u32),
    #[error("serves {limit} connections{whose}, its limit")]
    TooManyConnections {
        limit: usize,
        /// Of whom.
        whose: &'static str,
    },
    #[error(
        "the answer has {0} bytes, more than the {MAX_RESPONSE_BYTES} of a frame: ask for less"
    )]
    AnswerTooLong(usize),

    #[error("no client named '{text}': see `prorata ps` for those that exist{suggestion}")]
    NoClient {
        text: String,
        suggestion: Suggestion,
    },
    #[error("no currency named '{text}': see `prorata lscur` for those that exist{suggestion}")]
    NoCurrency {
        text: String,
        suggestion: Suggestion,
    },
    #[error(
        "neither a client nor a currency is named '{text}': see `prorata ps` and `prorata lscur` \
         for those that exist{suggestion}"
    )]
    NoTarget {
        text: String,
        suggestion: Suggestion,
    },
    #[error(
        "'{text}' names client {client} and currency {currency}: write client:{text} or currency:{text}"
    )]
    AmbiguousTarget {
        text: String,
        client: String,
        currency: String,
    },
    #[error("'{text}' is no {kind}: give an identifier such as {example}, see `prorata {list}`")]
    NotIdentifier {
        text: String,
        kind: &'static str,
        example: &'static str,
        list: &'static str,
    },
    #[error("no user named '{0}': give a login name or a user id")]
    NoUser(String),

    #[error("name '{name}' {problem}: choose another name")]
    BadName { name: String, problem: &'static str },
    #[error("currency name '{name}' is kept for user {owner}: choose another name")]
    NameKept { name: String, owner: u32 },
    #[error(
        "user {uid} has no currency, since '{name}' belongs to another user: name a currency to \
         use"
    )]
    NoDefaultCurrency { uid: u32, name: String },

    #[error("no process {0}: give the pid of a living process")]
    NoProcess(u32),
    #[error("process {0} is not managed: see `prorata ps` for those that are")]
    NotManaged(u32),
    #[error("process {pid} {reason}, which cannot be managed: give another pid")]
    Unmanageable { pid: u32, reason: &'static str },
    #[error("process {pid} belongs to user {owner}: user {uid} may manage only its own processes")]
    ForeignProcess { pid: u32, owner: u32, uid: u32 },
    #[error(
        "process {pid} belongs to user {owner}: this daemon runs as user {uid} and can manage \
         only its processes"
    )]
    BeyondDaemon { pid: u32, owner: u32, uid: u32 },
    #[error("{USERS_NEED_ROOT}")]
    UsersNeedRoot,
    #[error(
        "'{name}' holds what its user runs unasked, so nobody can {what} it: name a process \
         (prorata set PID), which leaves it for a client of its own"
    )]
    Rest { name: String, what: &'static str },
    #[error(
        "process {pid} is a job of the shell '{shell}' ({shell_pid}), which would take it for \
         stopped whenever another client runs: start it by `prorata run` there, or delegate a \
         control group to this user (systemd: Delegate=cpu)"
    )]
    ShellJob {
        pid: u32,
        shell: String,
        shell_pid: u32,
    },
    #[error(
        "process {pid} is a job of the shell '{shell}' ({shell_pid}), which would take it for \
         stopped whenever its limit makes it pause: start it by `prorata run --max` there, or give \
         it no limit"
    )]
    LimitedShellJob {
        pid: u32,
        shell: String,
        shell_pid: u32,
    },
    #[error("process {pid} is managed already, as client '{name}' ({id}): change that one")]
    ManagedAlready { pid: u32, name: String, id: String },
    #[error(
        "process {asker} cannot adopt the orphans of process {pid}, which is not its child: ask \
         without adoption"
    )]
    NotParent { pid: u32, asker: u32 },
    #[error("process {pid} cannot be managed: {source}")]
    Engine { pid: u32, source: EngineError },

    #[error(
        "client '{client}' holds tickets of '{first}' and '{second}': name one of them with -c"
    )]
    SeveralCurrencies {
        client: String,
        first: String,
        second: String,
    },
    #[error(
        "client '{client}' holds {first} and {second}, both of currency '{currency}': change one \
         of these tickets by its identifier"
    )]
    SeveralTickets {
        client: String,
        first: String,
        second: String,
        currency: String,
    },
    #[error(
        "client '{client}' holds no tickets of '{wanted}' but {held}: issue some to it with mktkt, \
         or name that one"
    )]
    NotHeld {
        client: String,
        wanted: String,
        held: String,
    },
    #[error(
        "currency '{currency}' is backed by base tickets {first} and {second}: change one of \
         these by its identifier"
    )]
    SeveralBackings {
        currency: String,
        first: String,
        second: String,
    },
    #[error(
        "client '{client}' holds {total} tickets together, more than one ticket can be: deflate some first"
    )]
    TooManyTickets { client: String, total: u64 },

    #[error(
        "user {uid} has {quota} {what}, the most that one user may have here: give up some first"
    )]
    Quota {
        uid: u32,
        what: &'static str,
        quota: u32,
    },
    #[error("user {uid} may not {what} client '{client}': ask its owner, user {owner}")]
    NotClientOwner {
        uid: u32,
        what: &'static str,
        client: String,
        owner: u32,
    },
    #[error("user {uid} may not {what}: ask the daemon's owner, user {owner}")]
    NotDaemonOwner {
        uid: u32,
        what: &'static str,
        owner: u32,
    },
    #[error(
        "a quantum of {0:?} cannot be enforced: give one from {min:?} to {max:?}",
        min = Duration::from_nanos(MIN_QUANTUM_NS),
        max = Duration::from_nanos(MAX_QUANTUM_NS)
    )]
    Quantum(Duration),
    #[error(
        "the {engine} engine holds no limits of CPU time on this kernel: leave --max out, or use the \
         user engine (`prorata stop` and `prorata start --engine user`)"
    )]
    NoLimits { engine: &'static str },
    #[error("{0} events cannot be told: ask for 1 to {MOST_EVENTS}")]
    EventCount(u32),
    #[error(
        "the {0} engine keeps no events: start it with `prorata start --engine {0} --trace`, and \
         `prorata events` reads its trace"
    )]
    NoEvents(&'static str),
    #[error(
        "the {engine} engine has the mechanisms {fixed} since it started, and cannot change them to \
         {wanted} while it runs: use `prorata stop`, then `prorata start --engine {engine} \
         --hybrid={wanted}`"
    )]
    FixedHybrid {
        wanted: HybridChoice,
        fixed: HybridChoice,
        engine: &'static str,
    },
    #[error(
        "the {engine} engine holds at most {most} limits of CPU time: end another one by \
         `prorata set CLIENT --max none`"
    )]
    TooManyLimits { engine: &'static str, most: usize },
    #[error(transparent)]
    Slot(#[from] SlotError),
    #[error(
        "no token of level {level} left in {account}, which pays for this claim: free a slot, or \
         have root or the daemon's owner give tokens by `prorata slots tokens {word} --level \
         {level} --add N`"
    )]
    NoToken {
        level: Level,
        account: String,
        /// The account as the command takes it.
        word: String,
    },
    #[error("no timetable is open: the daemon's owner opens one by `prorata slots open`")]
    NoTimetable,
    #[error(
        "the timetable has {0} claimed slots and keeps its shape until they are free: close it by \
         `prorata slots close`, which ends all claims"
    )]
    ClaimedTimetable(usize),
    #[error("the timetable cannot be shown at {path}: {source}")]
    Bulletin { path: PathBuf, source: io::Error },
    #[error("a policy of {0} classes is too long: take at most {CLASSES}")]
    ManyClasses(usize),
    #[error("no thread {0}: give the number of a living one")]
    NoThread(u32),
    #[error("this connection watches the timetable: ask by another one")]
    WatchesOnly,
    #[error("{0} connections of this user watch the timetable already: close one")]
    Watchers(usize),
    #[error(
        "the {engine} engine does not know the policy {policy}: choose {}",
        known.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
    )]
    Policy {
        policy: PolicyName,
        engine: &'static str,
        known: &'static [PolicyName],
    },
}

/// A name that may have been meant.
#[derive(Debug)]
pub(crate) struct Suggestion(pub Option<String>);

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(name) => write!(f, " (did you mean '{name}'?)"),
            None => Ok(()),
        }
    }
}

/// Names at which a suggestion looks at most.
const NAMES_COMPARED: usize = 1 << 10;

impl Suggestion {
    /// The nearest of `names` to `text`, if it is near: one slip in five
    /// characters, and at least one is forgiven.
    pub fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Suggestion {
        let text = shortened(text);
        let forgiven = (text.chars().count() / 5).clamp(1, 3);
        let near = names
            .take(NAMES_COMPARED)
            .map(|name| (strsim::osa_distance(&text, name), name))
            .filter(|(distance, _)| *distance <= forgiven)
            .min_by_key(|(distance, _)| *distance);
        Suggestion(near.map(|(_, name)| name.to_owned()))
    }
}

/// Text from outside as a refusal repeats it: without control characters and
/// not at length.
pub(crate) fn shortened(text: &str) -> String {
    const CHARACTERS: usize = 100;
    let mut short: String = text
        .chars()
        .take(CHARACTERS)
        .map(|c| {
            if c.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect();
    if text.chars().nth(CHARACTERS).is_some() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_gets_a_suggestion_and_another_word_none() {
        let names = ["encoder", "backup", "a"];
        let nearest = |text| Suggestion::nearest(text, names.into_iter()).0;
        assert_eq!(nearest("encodre").as_deref(), Some("encoder"));
        assert_eq!(nearest("bakup").as_deref(), Some("backup"));
        assert_eq!(nearest("restore"), None);
        assert_eq!(nearest("bkp"), None);
    }

    #[test]
    fn foreign_text_is_repeated_in_one_short_line() {
        assert_eq!(shortened("a\nb"), "a\u{fffd}b");
        assert_eq!(shortened(&"x".repeat(100)), "x".repeat(100));
        assert_eq!(shortened(&"x".repeat(101)), "x".repeat(100) + "...");
    }
}
