//! The terminal: its size, a progress line, and views that update in place.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

/// Columns of a terminal of unknown size.
const USUAL_COLUMNS: usize = 80;

/// Rows of a terminal of unknown size.
const USUAL_ROWS: usize = 24;

/// Environment variable with the size (`80x24`) of the terminal that shows our
/// output although standard output is none. A micro-VM has no terminal, but
/// the host prints its output on one.
pub const REMOTE: &str = "PRORATA_TERMINAL";

/// The value of [`REMOTE`] for a micro-VM whose output goes to our terminal.
pub fn remote() -> Option<String> {
    columns().map(|_| {
        let (columns, rows) = size();
        format!("{columns}x{rows}")
    })
}

/// Columns of standard output; `None` if it is no terminal.
pub fn columns() -> Option<usize> {
    let is_terminal = rustix::termios::isatty(io::stdout()) || far_size().is_some();
    is_terminal.then(|| size().0)
}

fn far_size() -> Option<(usize, usize)> {
    let text = std::env::var(REMOTE).ok()?;
    let (columns, rows) = text.split_once('x')?;
    Some((columns.parse().ok()?, rows.parse().ok()?))
}

/// Columns and rows of the terminal on standard output.
pub fn size() -> (usize, usize) {
    if let Some(size) = far_size() {
        return size;
    }
    let given = tcgetwinsize(io::stdout()).ok();
    let or = |given: Option<u16>, usual: usize| {
        given.filter(|&cells| cells > 0).map_or(usual, usize::from)
    };
    (
        or(given.map(|size| size.ws_col), USUAL_COLUMNS),
        or(given.map(|size| size.ws_row), USUAL_ROWS),
    )
}

/// Progress on one line of standard error; nothing if that is no terminal.
#[derive(Debug)]
pub struct ProgressLine {
    is_shown: bool,
}

impl ProgressLine {
    /// An empty line.
    pub fn new() -> Self {
        Self {
            is_shown: io::stderr().is_terminal(),
        }
    }

    pub fn show(&self, line: &str) {
        if self.is_shown {
            // A failure to show progress must not end the command.
            let _ = write!(io::stderr(), "{CLEAR}{line}");
        }
    }

    pub fn clear(&self) {
        self.show("");
    }

    /// Has signals that end this process empty the line before.
    pub fn clear_at_signals(&self) -> nix::Result<()> {
        let once = SaFlags::SA_RESETHAND | SaFlags::SA_NODEFER;
        let clearing = SigAction::new(SigHandler::Handler(clear_and_end), once, SigSet::empty());
        let ending = [
            Signal::SIGHUP,
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGTERM,
        ];
        for signal in ending.into_iter().filter(|_| self.is_shown) {
            // SAFETY: the handler makes two system calls, both permitted in handlers.
            let before = unsafe { sigaction(signal, &clearing) }?;
            // As under nohup(1).
            if matches!(before.handler(), SigHandler::SigIgn) {
                // SAFETY: the action was in force before.
                unsafe { sigaction(signal, &before) }?;
            }
        }
        Ok(())
    }
}

/// What empties a terminal's line.
const CLEAR: &str = "\r\x1b[K";

/// Handles a signal whose action is the default one again by now.
extern "C" fn clear_and_end(signal: i32) {
    let _ = rustix::io::write(rustix::stdio::stderr(), CLEAR.as_bytes());
    let _ = Signal::try_from(signal).map(raise);
}

/// Lines that update in place, from the cursor on. On drop the last lines stay
/// and the cursor shows again.
#[derive(Debug, Default)]
pub struct InPlace {
    drawn: usize,
}

impl InPlace {
    /// Replaces the lines drawn before.
    pub fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let (columns, rows) = size();
        let mut frame = String::from("\x1b[?25l");
        if self.drawn > 0 {
            frame.push_str(&format!("\x1b[{}A", self.drawn));
        }
        frame.push('\r');
        // Lines that wrap or scroll could not be replaced.
        let shown = &lines[..lines.len().min(rows.saturating_sub(1))];
        for line in shown {
            frame.push_str(&prorata_report::text::cut(line, columns));
            frame.push_str("\x1b[K\n");
        }
        frame.push_str("\x1b[J");
        self.drawn = shown.len();
        write(&frame)
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        if self.drawn > 0 {
            // The terminal may be gone.
            let _ = write("\x1b[?25h");
        }
    }
}

/// The whole screen and its keys. Drop restores the terminal.
#[derive(Debug)]
pub struct Screen {
    before: Termios,
}

impl Screen {
    /// Takes the terminal of standard input and output.
    pub fn take() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let screen = Self { before };
        screen.enter()?;
        Ok(screen)
    }

    /// Keys arrive at once and without echo; Ctrl-C and Ctrl-Z stay signals.
    fn enter(&self) -> io::Result<()> {
        let mut keys = self.before.clone();
        keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        keys.special_codes[SpecialCodeIndex::VMIN] = 0;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Flush, &keys)?;
        write("\x1b[?1049h\x1b[?25l")
    }

    fn leave(&self) -> io::Result<()> {
        write("\x1b[?25h\x1b[?1049l")?;
        Ok(tcsetattr(
            io::stdin(),
            OptionalActions::Flush,
            &self.before,
        )?)
    }

    /// Restores the terminal while `pause` runs.
    pub fn pause(&self, pause: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.leave()?;
        pause()?;
        self.enter()
    }

    /// Fills the screen with `lines`.
    pub fn draw(&self, lines: &[String]) -> io::Result<()> {
        let (columns, rows) = size();
        let mut frame = String::from("\x1b[H");
        for (row, line) in lines.iter().take(rows).enumerate() {
            frame.push_str(if row > 0 { "\r\n" } else { "" });
            frame.push_str(&cut_styled(line, columns));
            frame.push_str("\x1b[K");
        }
        frame.push_str("\x1b[J");
        write(&frame)
    }

    /// The bytes of keys pressed so far; empty if there are none.
    pub fn keys(&self) -> io::Result<Vec<u8>> {
        let mut bytes = [0; 64];
        let count = rustix::io::read(io::stdin().as_fd(), &mut bytes)?;
        Ok(bytes[..count].to_vec())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = self.leave();
    }
}

/// A line in reverse video.
pub fn selected(line: &str) -> String {
    format!("\x1b[7m{line}\x1b[0m")
}

/// Cuts a line that may be [`selected`].
fn cut_styled(line: &str, columns: usize) -> String {
    match line
        .strip_prefix("\x1b[7m")
        .and_then(|rest| rest.strip_suffix("\x1b[0m"))
    {
        Some(plain) => selected(&prorata_report::text::cut(plain, columns)),
        None => prorata_report::text::cut(line, columns),
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
