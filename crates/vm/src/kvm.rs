//! Whether KVM works. Its device alone does not prove that: inside another
//! machine KVM may hang on the first instruction that it cannot execute. Only a
//! machine that comes up proves it, so a note keeps the outcome.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Whether this process may use the device.
pub fn is_there() -> bool {
    let device = File::options().read(true).write(true).open("/dev/kvm");
    device.is_ok()
}

/// Whether a machine with KVM came up since the last boot, or `None` without a
/// trial.
pub fn recall(notes: &Path) -> Option<bool> {
    let note = fs::read_to_string(path(notes)).ok()?;
    let outcome = note.strip_prefix(&boot()?)?;
    match outcome {
        " works\n" => Some(true),
        " fails\n" => Some(false),
        _ => None,
    }
}

/// Notes an outcome. If that is impossible, the next machine tries again.
pub fn note(notes: &Path, works: bool) {
    if let Some(boot) = boot() {
        let outcome = if works { "works" } else { "fails" };
        let _ = fs::create_dir_all(notes);
        let _ = fs::write(path(notes), format!("{boot} {outcome}\n"));
    }
}

fn path(notes: &Path) -> PathBuf {
    notes.join("kvm")
}

/// The identifier of this boot of the host.
fn boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_hold_until_the_next_boot() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(recall(directory.path()), None);
        for works in [true, false] {
            note(directory.path(), works);
            assert_eq!(recall(directory.path()), Some(works));
        }
        fs::write(path(directory.path()), "another-boot works\n").unwrap();
        assert_eq!(recall(directory.path()), None);
    }
}
