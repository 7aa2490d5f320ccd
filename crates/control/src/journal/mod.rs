//! The journal: changes reach the disk before they take effect.
//!
//! One file holds an image of a state and the changes since. It only grows at
//! its end. When it has grown enough, or when something in it is unreliable, a
//! new file with a new image is renamed over it. So there is exactly one
//! journal at every moment, and all of it is whole except perhaps its last
//! record.

mod disk;
mod record;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use disk::Disk;
pub(crate) use record::Damage;

use crate::state::{Change, State};

/// The daemon rewrites a journal when its changes take more bytes than this and
/// than its image.
const MIN_GROWTH_BYTES: u64 = 1 << 20;

/// Longest journal that is read. The daemon rewrites it long before.
const MAX_JOURNAL_BYTES: u64 = 1 << 30;

/// The first record: where the changes start from.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Image<B, S> {
    /// The boot in which the state's processes run.
    boot_id: B,
    state: S,
}

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    boot_id: String,
    /// The file at `path`, if its changes lead to the present state on the disk
    /// too. Otherwise it must be written anew before the next change.
    file: Option<Disk>,
    /// Bytes of it that count.
    length: u64,
    /// Bytes of its image.
    image_length: u64,
    next_sequence: u64,
    /// The file at `path` is damaged and must not be overwritten.
    keep_damaged: bool,
}

/// A journal and what it held.
#[derive(Debug)]
pub(crate) struct Opened {
    pub journal: Journal,
    /// The last state that can be relied on, and the boot in which its
    /// processes ran.
    pub found: Option<(State, String)>,
    pub damage: Option<Damage>,
}

/// Why a journal could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Reading failed.
    #[error("the journal {path} cannot be read: {source}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Writing failed.
    #[error(
        "the journal {path} cannot be written, so nothing was changed: {source}; make room for \
         it and ask again"
    )]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Journal {
    /// Reads the journal at `path`, if there is one. The first
    /// [`Journal::rewrite`] or [`Journal::append`] replaces the file.
    pub fn open(path: PathBuf, boot_id: String) -> Result<Opened, JournalError> {
        let bytes = match read(&path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(JournalError::Read { path, source }),
        };
        let Recovered {
            found,
            next_sequence,
            damage,
        } = bytes.as_deref().map(recover).unwrap_or_default();
        let journal = Journal {
            path,
            boot_id,
            file: None,
            length: 0,
            image_length: 0,
            next_sequence,
            keep_damaged: matches!(damage, Some(Damage::Corrupt { .. })),
        };
        Ok(Opened {
            journal,
            found,
            damage,
        })
    }

    /// Appends changes of `state`, all or none. They are on the disk when this
    /// returns.
    ///
    /// Cost: one write and one flush; now and then the whole image.
    pub fn append(&mut self, changes: &[Change], state: &State) -> Result<(), JournalError> {
        let grown = self.length - self.image_length > self.image_length.max(MIN_GROWTH_BYTES);
        if self.file.is_none() || grown {
            match self.rewrite(state) {
                Err(error) if self.file.is_none() => return Err(error),
                Err(error) => tracing::warn!("{error}"),
                Ok(()) => {}
            }
        }
        let mut bytes = Vec::new();
        let payload = serde_json::to_vec(changes).expect("changes have string keys only");
        record::encode(&mut bytes, self.next_sequence, &payload);
        let file = self.file.as_ref().expect("written just now or before");
        let written = file.write(&bytes, self.length);
        let flush_failed = written.is_ok();
        if let Err(source) = written.and_then(|()| file.flush()) {
            self.take_back(flush_failed, state);
            return Err(JournalError::Write {
                path: self.path.clone(),
                source,
            });
        }
        self.length += bytes.len() as u64;
        self.next_sequence += 1;
        Ok(())
    }

    /// Takes back a record that was not written, or whose flush failed. A later
    /// reader must not find a refused change, not even after a power cut.
    ///
    /// Where the disk is full the cut can be flushed, and the file goes on.
    /// After a failed flush the content of the disk is unknown, earlier records
    /// included: only a new file helps.
    fn take_back(&mut self, flush_failed: bool, state: &State) {
        let file = self.file.as_ref().expect("it was written to");
        let cut = file.cut(self.length).and_then(|()| file.flush());
        if flush_failed || cut.is_err() {
            self.file = None;
            if let Err(error) = self.rewrite(state) {
                tracing::warn!("{error}");
            }
        }
    }

    /// Appends changes that have happened in any case. If they cannot be
    /// written, nothing more is written until a new image holds them.
    pub fn note(&mut self, changes: &[Change], state: &State) {
        if let Err(error) = self.append(changes, state) {
            tracing::warn!("{error}");
            self.file = None;
        }
    }

    /// Writes a new journal that starts with `state` and replaces the old one.
    /// If this fails, the old one goes on, or there is none.
    pub fn rewrite(&mut self, state: &State) -> Result<(), JournalError> {
        let new = self.path.with_extension("new");
        self.write_image(&new, state).map_err(|source| {
            // The old attempt may be what fills the disk.
            let _ = fs::remove_file(&new);
            JournalError::Write {
                path: self.path.clone(),
                source,
            }
        })
    }

    fn write_image(&mut self, new: &Path, state: &State) -> io::Result<()> {
        let image = Image {
            boot_id: self.boot_id.as_str(),
            state,
        };
        let payload = serde_json::to_vec(&image).expect("images have string keys only");
        let mut bytes = record::MAGIC.to_vec();
        record::encode(&mut bytes, self.next_sequence, &payload);
        let file = Disk::create(new)?;
        file.write(&bytes, 0)?;
        file.flush()?;
        if self.keep_damaged {
            self.set_aside()?;
        }
        let renamed = disk::rename(new, &self.path);
        // If the rename itself may be lost by a power cut, neither file can go on:
        // the old one has lost its name.
        if renamed.is_ok() || !new.exists() {
            self.length = bytes.len() as u64;
            self.image_length = self.length;
            self.next_sequence += 1;
            self.file = renamed.is_ok().then_some(file);
        }
        renamed
    }

    /// Gives a damaged journal a second name, under which it stays.
    fn set_aside(&mut self) -> io::Result<()> {
        for number in 1.. {
            let aside = self.path.with_extension(format!("damaged-{number}"));
            match fs::hard_link(&self.path, &aside) {
                Ok(()) => {
                    tracing::error!("the damaged journal is kept as {}", aside.display());
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        self.keep_damaged = false;
        Ok(())
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let length = fs::metadata(path)?.len();
    if length > MAX_JOURNAL_BYTES {
        return Err(io::Error::other(format!(
            "{length} bytes are more than a journal has"
        )));
    }
    fs::read(path)
}

/// What can be told from a journal's bytes.
#[derive(Default, Debug)]
struct Recovered {
    found: Option<(State, String)>,
    next_sequence: u64,
    damage: Option<Damage>,
}

/// Replays a journal up to the first record that is unreliable.
fn recover(bytes: &[u8]) -> Recovered {
    let scan = record::scan(bytes);
    let payloads: Vec<&[u8]> = scan
        .payloads
        .iter()
        .map(|range| &bytes[range.clone()])
        .collect();
    let (found, damage) = match replay(&payloads) {
        Ok(found) => (found, scan.damage),
        // A checksum was right by chance, or another version wrote this.
        Err(bad) => {
            let damage = Damage::Corrupt {
                offset: scan.payloads[bad].start,
            };
            (replay(&payloads[..bad]).unwrap_or_default(), Some(damage))
        }
    };
    Recovered {
        found,
        next_sequence: scan.next_sequence,
        damage,
    }
}

/// `Err` is the index of the first payload that makes no sense.
fn replay(payloads: &[&[u8]]) -> Result<Option<(State, String)>, usize> {
    let Some((image, entries)) = payloads.split_first() else {
        return Ok(None);
    };
    let Image { boot_id, mut state } =
        serde_json::from_slice::<Image<String, State>>(image).map_err(|_| 0_usize)?;
    for (index, entry) in (1_usize..).zip(entries) {
        let changes: Vec<Change> = serde_json::from_slice(entry).map_err(|_| index)?;
        for change in &changes {
            state.apply(change).map_err(|_| index)?;
        }
    }
    Ok(Some((state, boot_id)))
}

#[cfg(test)]
pub(crate) use disk::faults;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
