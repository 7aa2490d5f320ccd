//! Text for terminals: escaped, and cut to a width.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

/// Columns that `text` takes on a terminal.
pub fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// `text` with every control character and every bidirectional mark escaped
/// (`\u{1b}`), so that no name can move the cursor or reorder a line.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let reorders = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || reorders {
            // Writing to a String cannot fail.
            let _ = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// `text` cut to `columns`, the cut shown by `…`.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        out.push(c);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelled_out() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\u{a}");
        assert_eq!(printable("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(printable("grün 日本"), "grün 日本");
    }

    #[test]
    fn a_cut_is_never_wider_than_asked() {
        for columns in 0..12 {
            for text in ["", "a", "abcdefghij", "日本日本日本", "a日b本c"] {
                let cut = cut(text, columns);
                assert!(
                    width(&cut) <= columns,
                    "{text:?} cut to {columns} gave {cut:?}"
                );
            }
        }
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
    }
}
