//! The loop that serves all connections, one event at a time, on one thread.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use prorata_protocol::PATIENCE;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::control::Control;
use crate::home::Home;
use crate::peer::Peer;
use crate::refusal::Refusal;
use crate::session::{self, Session};

/// Most connections at the same time when root connects: other users never lock
/// root out.
pub(crate) const MAX_CONNECTIONS: usize = 256;

/// Most when the daemon's owner connects, if that is not root.
pub(crate) const MAX_CONNECTIONS_FOR_OWNER: usize = 240;

/// Most when any other user connects.
pub(crate) const MAX_CONNECTIONS_FOR_OTHERS: usize = 192;

/// Most connections of one such user.
pub(crate) const MAX_CONNECTIONS_OF_ONE: usize = 32;

/// Most connections of one user that watch the timetable.
pub(crate) const MAX_WATCHERS: usize = 16;

/// Pause after a connection could not be accepted, most likely for want of file
/// descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Pause before the server looks again for new roots of clients with a root
/// that could not be watched.
const ROOTS_PAUSE: Duration = Duration::from_secs(1);

/// Pause between a removal beside the socket and the look for it: a directory is removed file by
/// file.
const HOME_PAUSE: Duration = Duration::from_secs(1);

/// Pause between two attempts to make the socket again.
const HOME_RETRY: Duration = Duration::from_secs(10);

/// The data of events that are not a session's.
const LISTENER: u64 = 0;
const SIGNAL: u64 = 1;
const EXITS: u64 = 2;
const ROOTS: u64 = 3;
const HOME: u64 = 4;
const FIRST_SESSION: u64 = 5;

/// How long a server waits for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// For a client, before an idle daemon ends.
    pub linger: Duration,
    /// For the rest of a request, and for a client to take an answer.
    pub patience: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            linger: Duration::from_secs(5),
            patience: Duration::from_secs(5),
        }
    }
}

/// Why the loop ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The daemon was idle.
    Idle,
    /// A request asked for it.
    Stopped,
    /// A signal asked for it.
    Signalled,
}

/// Why the loop cannot go on.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The engine enforces nothing any more.
    Engine(String),
    /// The system refuses to wait for events.
    System(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::System(error)
    }
}

/// The daemon's connections, and what serves them.
pub(crate) struct Server {
    epoll: OwnedFd,
    listener: UnixListener,
    home: Home,
    /// Something was removed beside the socket: when to look for the socket.
    look_home_at: Option<Instant>,
    /// When to look for what users run, where that is wanted.
    sweep_at: Instant,
    /// The server does not accept connections before then.
    accept_after: Option<Instant>,
    /// Readable when a signal ends the daemon.
    _signals: UnixStream,
    control: Control,
    /// By the data of their events, which grow and are never used again.
    sessions: BTreeMap<u64, Entry>,
    next_session: u64,
    /// Sessions with a whole request. Each round serves one request of each, so
    /// that a client with many requests delays no other.
    ready: BTreeSet<u64>,
    timing: Timing,
    /// Since when the daemon is idle.
    idle_since: Option<Instant>,
    /// The starter should connect before then; none once a client has
    /// connected.
    expected_until: Option<Instant>,
}

struct Entry {
    session: Session,
    /// The events that the epoll watches for.
    watched: EventFlags,
}

impl Server {
    /// Serves the clients that connect to the socket of `home` from now on.
    pub fn new(
        (home, listener): (Home, UnixListener),
        signals: UnixStream,
        control: Control,
        timing: Timing,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let watch = |fd, data| epoll::add(&epoll, fd, EventData::new_u64(data), EventFlags::IN);
        watch(listener.as_fd(), LISTENER)?;
        watch(signals.as_fd(), SIGNAL)?;
        watch(control.engine.exits(), EXITS)?;
        watch(control.roots.as_fd(), ROOTS)?;
        watch(home.as_fd(), HOME)?;
        Ok(Self {
            epoll,
            listener,
            home,
            look_home_at: None,
            sweep_at: Instant::now(),
            accept_after: None,
            _signals: signals,
            control,
            sessions: BTreeMap::new(),
            next_session: FIRST_SESSION,
            ready: BTreeSet::new(),
            timing,
            idle_since: None,
            expected_until: Some(Instant::now() + PATIENCE),
        })
    }

    /// Serves until there is a reason to end. A connection that fails is no
    /// such reason.
    pub fn run(&mut self) -> Result<End, Failure> {
        let mut events = Vec::with_capacity(64);
        loop {
            let now = Instant::now();
            if self.is_idle_at(now) {
                // A client may have connected just now. A later one gets a hang-up
                // without an answer, and starts the next daemon.
                self.accept(now)?;
                if self.sessions.is_empty() {
                    return Ok(End::Idle);
                }
            }
            self.wait(&mut events, now)?;
            let now = Instant::now();
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept(now)?,
                    SIGNAL => return Ok(End::Signalled),
                    EXITS => {
                        self.control.remove_exited();
                        if let Some(failure) = self.control.engine.failure() {
                            return Err(Failure::Engine(failure));
                        }
                    }
                    ROOTS => self.control.renew_roots(),
                    HOME => {
                        self.home.hush();
                        self.look_home_at.get_or_insert(now + HOME_PAUSE);
                    }
                    session => self.advance(session, now),
                }
            }
            if self.control.roots.has_missed() {
                self.control.renew_roots();
            }
            self.control.advance_slots();
            self.control.slots.wake_readers();
            let is_stopped = self.serve_ready(now);
            self.tell_news(now);
            if is_stopped {
                return Ok(End::Stopped);
            }
            self.expire(now);
            self.sweep_users(now);
            self.resume_accepting(now)?;
            self.look_home(now)?;
        }
    }

    /// Whether the daemon has been idle for as long as it lingers.
    fn is_idle_at(&mut self, now: Instant) -> bool {
        let control = &self.control;
        if !self.sessions.is_empty()
            || !control.state.roots.is_empty()
            || control.state.settings.stays
            || control.state.settings.users
            || control.slots.open.is_some()
            || control.engine.works_without_clients()
        {
            self.idle_since = None;
            return false;
        }
        self.idle_since.get_or_insert(now);
        self.idle_until().is_some_and(|until| until <= now)
    }

    /// When to end if no client connects.
    fn idle_until(&self) -> Option<Instant> {
        let until = self.idle_since? + self.timing.linger;
        Some(self.expected_until.map_or(until, |time| time.max(until)))
    }

    fn wait(&self, events: &mut Vec<Event>, now: Instant) -> io::Result<()> {
        events.clear();
        let until = |time: Instant| time.saturating_duration_since(now);
        let timeout = [
            (!self.ready.is_empty()).then_some(Duration::ZERO),
            self.control.roots.has_missed().then_some(ROOTS_PAUSE),
            self.accept_after.map(until),
            self.look_home_at.map(until),
            self.control
                .state
                .settings
                .users
                .then(|| until(self.sweep_at)),
            self.idle_until().map(until),
            self.control.slots_wait(),
            self.sessions
                .values()
                .filter_map(|entry| entry.session.deadline())
                .min()
                .map(until),
        ];
        let timeout = timeout.into_iter().flatten().min();
        let timeout = timeout.map(|left| Timespec::try_from(left).expect("minutes at most"));
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(events),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Accepts connections, as many as there is room for.
    fn accept(&mut self, now: Instant) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                // A connection that fails at once is the client's problem.
                Ok((stream, _)) => drop(self.admit(stream)),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(()),
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    _ => {
                        tracing::warn!("a connection cannot be accepted: {error}");
                        epoll::delete(&self.epoll, &self.listener)?;
                        self.accept_after = Some(now + ACCEPT_PAUSE);
                        return Ok(());
                    }
                },
            }
        }
    }

    fn sweep_users(&mut self, now: Instant) {
        if self.control.state.settings.users && self.sweep_at <= now {
            self.sweep_at = Instant::now() + self.control.sweep_users();
        }
    }

    fn resume_accepting(&mut self, now: Instant) -> io::Result<()> {
        if self.accept_after.is_some_and(|time| time <= now) {
            let data = EventData::new_u64(LISTENER);
            epoll::add(&self.epoll, &self.listener, data, EventFlags::IN)?;
            self.accept_after = None;
        }
        Ok(())
    }

    /// Makes a removed socket again. Connections go on. The journal begins anew, since it may be
    /// gone too.
    fn look_home(&mut self, now: Instant) -> io::Result<()> {
        if self.look_home_at.is_none_or(|time| time > now) {
            return Ok(());
        }
        self.look_home_at = None;
        let listener = match self.home.renew() {
            Ok(Some(listener)) => listener,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(error) => {
                // The directory of a login is gone until the next login.
                tracing::warn!("{} cannot be made again: {error}", self.home.socket());
                self.look_home_at = Some(now + HOME_RETRY);
                return Ok(());
            }
        };
        listener.set_nonblocking(true)?;
        let data = EventData::new_u64(LISTENER);
        epoll::add(&self.epoll, &listener, data, EventFlags::IN)?;
        self.listener = listener;
        self.accept_after = None;
        if let Err(error) = self.control.journal.rewrite(&self.control.state) {
            tracing::warn!("{error}");
        }
        Ok(())
    }

    fn admit(&mut self, stream: UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let welcome = Peer::of(&stream).map_err(Refusal::from);
        let peer = match welcome.and_then(|peer| self.room_for(peer)) {
            Ok(peer) => peer,
            Err(refusal) => {
                // A burst of programs causes many of these.
                tracing::debug!("a connection is refused: {refusal}");
                session::turn_away(stream, &refusal);
                return Ok(());
            }
        };
        let session = Session::new(stream, peer, self.timing.patience);
        let watched = session.interest();
        let data = EventData::new_u64(self.next_session);
        epoll::add(&self.epoll, session.as_fd(), data, watched)?;
        self.sessions
            .insert(self.next_session, Entry { session, watched });
        self.next_session += 1;
        self.expected_until = None;
        Ok(())
    }

    /// Admits `peer` if there is room for one of its kind.
    fn room_for(&self, peer: Peer) -> Result<Peer, Refusal> {
        let uid = peer.principal.uid;
        let sessions = self.sessions.values();
        let of_user = sessions
            .filter(|entry| entry.session.peer.principal.uid == uid)
            .count();
        let owner = self.control.host.own_uid();
        check_room(uid, owner, self.sessions.len(), of_user).map(|()| peer)
    }

    /// Reads from and writes to one session.
    fn advance(&mut self, id: u64, now: Instant) {
        if let Some(entry) = self.sessions.get_mut(&id) {
            let result = entry.session.advance(now);
            self.settle(id, result);
        }
    }

    /// Answers one request of each session with one. Returns whether one of
    /// them ends the daemon.
    fn serve_ready(&mut self, now: Instant) -> bool {
        let mut stop = false;
        for id in std::mem::take(&mut self.ready) {
            let watching = self.watching_beside(id);
            let Some(Entry { session, .. }) = self.sessions.get_mut(&id) else {
                continue;
            };
            let result = match session.take_frame() {
                Ok(None) => Ok(()),
                Ok(Some(_)) if session.is_watching() => session.dismiss(&Refusal::WatchesOnly, now),
                Ok(Some(frame)) => {
                    let outgoing = self.control.handle(&session.peer, &frame);
                    session.hold(outgoing.held);
                    stop |= outgoing.stop;
                    match outgoing.watches.filter(|_| watching >= MAX_WATCHERS) {
                        Some(_) => session.dismiss(&Refusal::Watchers(watching), now),
                        None => {
                            if let Some(freed) = outgoing.watches {
                                session.watch(freed);
                            }
                            session.answer(&outgoing.response, now)
                        }
                    }
                }
                Err(refusal) => session.dismiss(&refusal, now),
            };
            self.settle(id, result);
            self.control.slots.wake_readers();
        }
        stop
    }

    /// Connections of the same user that watch the timetable.
    fn watching_beside(&self, id: u64) -> usize {
        let user = |entry: &Entry| entry.session.peer.principal.uid;
        let Some(own) = self.sessions.get(&id).map(user) else {
            return 0;
        };
        let sessions = self.sessions.values();
        sessions
            .filter(|entry| entry.session.is_watching() && user(entry) == own)
            .count()
    }

    /// Tells all that watch what has happened to the timetable.
    fn tell_news(&mut self, now: Instant) {
        let all = self.control.slots.take_news();
        if all.is_empty() {
            return;
        }
        let ids = self.sessions.iter();
        let ids = ids.filter(|(_, entry)| entry.session.is_watching());
        for id in ids.map(|(id, _)| *id).collect::<Vec<_>>() {
            if let Some(Entry { session, .. }) = self.sessions.get_mut(&id) {
                let told = all.iter().try_for_each(|news| session.tell(news, now));
                self.settle(id, told);
            }
        }
    }

    fn expire(&mut self, now: Instant) {
        let late = |entry: &&Entry| entry.session.deadline().is_some_and(|time| time <= now);
        let ids: Vec<u64> = self
            .sessions
            .iter()
            .filter(|(_, entry)| late(entry))
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            if let Some(entry) = self.sessions.get_mut(&id) {
                let result = entry.session.expire(now);
                self.settle(id, result);
            }
        }
    }

    /// After a change of a session: closes it if it is over, else waits for
    /// what it needs next.
    fn settle(&mut self, id: u64, result: io::Result<()>) {
        let Some(Entry { session, watched }) = self.sessions.get_mut(&id) else {
            return;
        };
        let mut alive = result.is_ok() && !session.is_over();
        if alive && session.has_frame() {
            self.ready.insert(id);
        }
        let wanted = session.interest();
        if alive && wanted != *watched {
            *watched = wanted;
            let data = EventData::new_u64(id);
            alive = epoll::modify(&self.epoll, session.as_fd(), data, wanted).is_ok();
        }
        if !alive {
            self.close(id);
        }
    }

    fn close(&mut self, id: u64) {
        self.ready.remove(&id);
        if let Some(Entry { session, .. }) = self.sessions.remove(&id) {
            let _ = epoll::delete(&self.epoll, session.as_fd());
            self.control.end_held(&session.held);
        }
    }
}

/// Whether user `uid` may have one more connection to the daemon of `owner`,
/// which has `all` already, `of_user` of them that user's.
fn check_room(uid: u32, owner: u32, all: usize, of_user: usize) -> Result<(), Refusal> {
    let (limit, whose) = if uid == 0 {
        (MAX_CONNECTIONS, "")
    } else if uid == owner {
        (MAX_CONNECTIONS_FOR_OWNER, " and keeps room for root")
    } else if of_user >= MAX_CONNECTIONS_OF_ONE {
        return Err(Refusal::TooManyConnections {
            limit: MAX_CONNECTIONS_OF_ONE,
            whose: " of a single user",
        });
    } else {
        (MAX_CONNECTIONS_FOR_OTHERS, " and keeps room for its owner")
    };
    if all < limit {
        Ok(())
    } else {
        Err(Refusal::TooManyConnections { limit, whose })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_admitted_up_to_each_limit() {
        const OWNER: u32 = 1_000;
        for (uid, limit) in [
            (0, MAX_CONNECTIONS),
            (OWNER, MAX_CONNECTIONS_FOR_OWNER),
            (OWNER + 1, MAX_CONNECTIONS_FOR_OTHERS),
        ] {
            assert!(check_room(uid, OWNER, limit - 1, 0).is_ok(), "{uid}");
            assert!(check_room(uid, OWNER, limit, 0).is_err(), "{uid}");
        }
        for (uid, is_limited) in [(0, false), (OWNER, false), (OWNER + 1, true)] {
            let with = |own| check_room(uid, OWNER, MAX_CONNECTIONS_OF_ONE, own);
            assert!(with(MAX_CONNECTIONS_OF_ONE - 1).is_ok(), "{uid}");
            assert_eq!(with(MAX_CONNECTIONS_OF_ONE).is_err(), is_limited, "{uid}");
        }
        let of_root = check_room(0, 0, MAX_CONNECTIONS - 1, MAX_CONNECTIONS - 1);
        assert!(of_root.is_ok(), "root owns its daemon");
    }
}
