//! The shared libraries of this program, and its loader.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Paths of all libraries that this process has loaded, as the loader found
/// them. A static program has none.
pub fn loaded() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    // SAFETY: `note` matches the type of the callback, and takes its last
    // argument for what it is: a pointer to `paths`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut paths).cast()) };
    paths
}

unsafe extern "C" fn note(
    object: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    paths: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid object, and passes on the pointer that
    // `loaded` gave it; no other code uses either during the call.
    let (object, paths) = unsafe { (&*object, &mut *paths.cast::<Vec<PathBuf>>()) };
    if !object.dlpi_name.is_null() {
        // SAFETY: a name that is not null is a string that lives as long as
        // the object is loaded, and we hold the loader's lock.
        let name = unsafe { CStr::from_ptr(object.dlpi_name) }.to_bytes();
        // The program itself has no name, the kernel's own object no path.
        if name.starts_with(b"/") {
            paths.push(PathBuf::from(OsStr::from_bytes(name)));
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_and_the_loader_are_listed() {
        let paths = loaded();
        for part in ["/libc.so", "/ld-linux"] {
            let found = paths
                .iter()
                .any(|path| path.to_string_lossy().contains(part));
            assert!(found, "no {part} among {paths:?}");
        }
        assert!(paths.iter().all(|path| path.is_file()), "{paths:?}");
    }
}
