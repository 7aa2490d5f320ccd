//! What the daemon needs to know of the machine it runs on.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;

use prorata_user::procfs;

use crate::process::ProcessInfo;

/// The machine's users and processes.
pub(crate) trait Host {
    /// A living process.
    fn process(&self, pid: u32) -> Option<ProcessInfo>;

    /// The nice value of a process's first thread.
    fn nice(&self, pid: u32) -> Option<i32>;

    /// The account of this login name.
    fn account_named(&self, name: &str) -> Option<UserAccount>;

    /// The account of this user id; many ids have none.
    fn account_of(&self, uid: u32) -> Option<UserAccount>;

    /// The daemon's own pid.
    fn own_pid(&self) -> u32;

    /// The user that the daemon runs as.
    fn own_uid(&self) -> u32;
}

/// An entry of the user database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UserAccount {
    pub name: String,
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
}

/// This Linux machine.
#[derive(Debug)]
pub(crate) struct Linux;

impl Host for Linux {
    fn process(&self, pid: u32) -> Option<ProcessInfo> {
        ProcessInfo::read(pid)
    }

    fn nice(&self, pid: u32) -> Option<i32> {
        Some(procfs::stat(pid).ok()?.nice)
    }

    fn account_named(&self, name: &str) -> Option<UserAccount> {
        let name = CString::new(name).ok()?;
        look_up(|entry, buffer, found| {
            // SAFETY: `name` is a C string; the others are as `look_up` says.
            unsafe {
                libc::getpwnam_r(
                    name.as_ptr(),
                    entry.as_mut_ptr(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    found,
                )
            }
        })
    }

    fn account_of(&self, uid: u32) -> Option<UserAccount> {
        look_up(|entry, buffer, found| {
            // SAFETY: all are as `look_up` says.
            unsafe {
                libc::getpwuid_r(
                    uid,
                    entry.as_mut_ptr(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    found,
                )
            }
        })
    }

    fn own_pid(&self) -> u32 {
        std::process::id()
    }

    fn own_uid(&self) -> u32 {
        rustix::process::getuid().as_raw()
    }
}

/// Longest entry of the user database that is read.
const MAX_ENTRY_BYTES: usize = 1 << 20;

/// Calls one of the reentrant look-ups of getpwnam(3) with an entry to fill,
/// a buffer for its texts, and where to say whether there is one.
fn look_up(
    mut ask: impl FnMut(&mut MaybeUninit<libc::passwd>, &mut [u8], &mut *mut libc::passwd) -> i32,
) -> Option<UserAccount> {
    let mut buffer = vec![0; 1 << 10];
    loop {
        let mut entry = MaybeUninit::uninit();
        let mut found = std::ptr::null_mut();
        match ask(&mut entry, &mut buffer, &mut found) {
            0 if found.is_null() => return None,
            0 => {
                // SAFETY: the look-up succeeded, so it filled the entry, whose
                // name is a C string in `buffer`, alive until we return.
                let (name, uid, gid) = unsafe {
                    let entry = entry.assume_init_ref();
                    (CStr::from_ptr(entry.pw_name), entry.pw_uid, entry.pw_gid)
                };
                let name = name.to_str().ok()?.to_owned();
                return Some(UserAccount { name, uid, gid });
            }
            libc::ERANGE if buffer.len() < MAX_ENTRY_BYTES => buffer.resize(buffer.len() * 2, 0),
            libc::EINTR => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_by_name_and_by_number() {
        let root = UserAccount {
            name: "root".into(),
            uid: 0,
            gid: 0,
        };
        assert_eq!(Linux.account_named("root"), Some(root.clone()));
        assert_eq!(Linux.account_of(0), Some(root));
    }

    #[test]
    fn users_without_an_account_are_not_found() {
        assert_eq!(Linux.account_named("no such user"), None);
        assert_eq!(Linux.account_named("nul\0"), None);
        assert_eq!(Linux.account_of(u32::MAX - 5), None);
    }
}
