//! Files of this repository that tests compare with what they should be.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a file with what it should be, given what it is; writes it afresh
/// where the variable `UPDATE_GOLDEN` is set.
pub fn compare(name: &str, wanted: impl FnOnce(&str) -> String) {
    // Tests run at once, and several papers have their lists in one file.
    static WRITING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = root().join(name);
    let is = std::fs::read_to_string(&path).unwrap_or_default();
    let wanted = wanted(&is);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, wanted).expect("writable");
    } else {
        assert!(
            is == wanted,
            "{name} differs: if that is meant, run with UPDATE_GOLDEN=1 and look at the difference"
        );
    }
}

/// A text with another part between the marks of that name.
pub fn between(text: &str, name: &str, part: &str) -> String {
    let begin = format!("<!-- {name}: from here on by the tests of prorata-reproduce. -->\n");
    let end = format!("<!-- {name}: up to here. -->\n");
    let (before, rest) = text.split_once(&begin).expect("a beginning");
    let (_, after) = rest.split_once(&end).expect("an end");
    format!("{before}{begin}{part}{end}{after}")
}
