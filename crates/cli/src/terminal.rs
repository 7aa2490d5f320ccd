//! The terminal: how wide it is, and drawing on it again and again.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

/// Columns where the terminal does not say.
const USUAL_COLUMNS: usize = 80;

/// Rows where the terminal does not say.
const USUAL_ROWS: usize = 24;

/// Environment variable that says that a terminal of so many columns and rows
/// (`80x24`) is at the other end of what is no terminal itself: a machine has
/// none, but what is printed there comes out on the host's.
pub const REMOTE: &str = "PRORATA_TERMINAL";

/// What [`REMOTE`] says of standard output, if it is a terminal.
pub fn remote() -> Option<String> {
    columns().map(|_| {
        let (columns, rows) = size();
        format!("{columns}x{rows}")
    })
}

/// Columns of standard output if it is a terminal.
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

/// How far something is, on a line of standard error that is written over;
/// nothing where that is no terminal.
#[derive(Debug)]
pub struct ProgressLine {
    is_shown: bool,
}

impl ProgressLine {
    /// Not begun yet.
    pub fn new() -> Self {
        Self {
            is_shown: io::stderr().is_terminal(),
        }
    }

    /// Writes `line` over the one before.
    pub fn show(&self, line: &str) {
        if self.is_shown {
            // Progress that cannot be shown is no reason to stop.
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        }
    }

    /// Leaves nothing.
    pub fn clear(&self) {
        self.show("");
    }
}

/// Lines that are drawn over one another, where the cursor stands. Dropped,
/// the last ones stay and the cursor is back.
#[derive(Debug, Default)]
pub struct InPlace {
    drawn: usize,
}

impl InPlace {
    /// Draws `lines` over those drawn before.
    pub fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let (columns, rows) = size();
        let mut frame = String::from("\x1b[?25l");
        if self.drawn > 0 {
            frame.push_str(&format!("\x1b[{}A", self.drawn));
        }
        frame.push('\r');
        // A line that wraps, or a frame taller than the screen, would leave
        // its upper part behind.
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
            // A terminal that has gone needs no cursor.
            let _ = write("\x1b[?25h");
        }
    }
}

/// A whole screen and its keys, for as long as it lives; then the terminal is
/// as it was.
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

    /// Keys come at once and are not shown; Ctrl-C and Ctrl-Z go on being
    /// signals.
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

    /// Gives the terminal back while `pause` runs.
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

    /// Bytes of keys that have been pressed; none if nothing was.
    pub fn keys(&self) -> io::Result<Vec<u8>> {
        let mut bytes = [0; 64];
        let count = rustix::io::read(io::stdin().as_fd(), &mut bytes)?;
        Ok(bytes[..count].to_vec())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has gone needs no restoring.
        let _ = self.leave();
    }
}

/// Shows a line as selected.
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
