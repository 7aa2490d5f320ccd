//! `top`: a live view of the clients.

mod keys;
mod view;

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use prorata_protocol::Connection;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::keys::decode;
use self::view::TopView;
use crate::args::view::TopArgs;
use crate::caller::{Caller, clients};
use crate::terminal::Screen;
use crate::wrapper::ending::Ending;
use crate::wrapper::signals::Signals;

/// The least delay: a shorter one only costs CPU time.
const LEAST_DELAY: Duration = Duration::from_millis(100);

/// The longest delay.
const LONGEST_DELAY: Duration = Duration::from_secs(3600);

const SIGNALS: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGTSTP,
    Signal::SIGWINCH,
];

pub fn top(caller: &Caller, args: &TopArgs) -> Result<()> {
    let terminal = rustix::termios::isatty(io::stdin()) && rustix::termios::isatty(io::stdout());
    ensure!(
        terminal,
        "top needs a terminal: use `prorata ps`, or `prorata ps --json`"
    );
    ensure!(
        (LEAST_DELAY..=LONGEST_DELAY).contains(&args.delay),
        "the delay {:?} is not between {LEAST_DELAY:?} and {LONGEST_DELAY:?}: give a delay such as 1s",
        args.delay
    );
    let mut connection = caller.open_to_read()?;
    let signals = Signals::block(&SIGNALS).context("cannot handle signals")?;
    let screen = Screen::take().context("cannot use the terminal")?;
    let ended_by = watch(&mut connection, args.delay, &signals, &screen);
    drop(screen);
    if let Some(signal) = ended_by? {
        // The signal ends this process, or the process ends by itself next.
        let _ = Ending::Killed(signal).pass_on();
    }
    Ok(())
}

/// Updates the view and handles keys until the user quits or a signal comes.
/// Returns the signal.
fn watch(
    connection: &mut Connection,
    delay: Duration,
    signals: &Signals,
    screen: &Screen,
) -> Result<Option<Signal>> {
    let mut view = TopView::new(connection.status().quantum_ns);
    view.sample(clients(connection)?);
    let mut next = Instant::now() + delay;
    loop {
        screen.draw(&view.lines())?;
        let left = next.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).context("the delay is bounded")?;
        let (stdin, arriving) = (io::stdin(), signals.as_fd());
        let mut fds = [
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(&arriving, PollFlags::IN),
        ];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let pressed = !fds[0].revents().is_empty();
        while let Some(received) = signals.next()? {
            match received.signal {
                Signal::SIGWINCH => {}
                Signal::SIGTSTP => screen.pause(|| Signals::suffer(Signal::SIGTSTP))?,
                signal => return Ok(Some(signal)),
            }
        }
        if pressed {
            let keys = screen.keys()?;
            // A readable terminal without bytes is gone.
            if keys.is_empty() {
                return Ok(None);
            }
            for key in decode(&keys) {
                if view.press(key, connection)? {
                    return Ok(None);
                }
            }
        }
        if Instant::now() >= next {
            view.sample(clients(connection)?);
            next = Instant::now() + delay;
        }
    }
}
