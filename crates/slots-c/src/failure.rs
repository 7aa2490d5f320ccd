//! The reason of the last failure of a thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Why the last call of this thread failed: one sentence, until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn prorata_slots_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

fn note(error: &dyn Display) {
    let text = error.to_string().replace('\0', " ");
    LAST.with_borrow_mut(|last| *last = CString::new(text).unwrap_or_default());
}

/// Runs a call; `failed` is what it returns on failure.
pub(crate) fn guarded<T, E: Display>(failed: T, call: impl FnOnce() -> Result<T, E>) -> T {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => {
            note(&"");
            value
        }
        Ok(Err(error)) => {
            note(&error);
            failed
        }
        Err(_) => {
            note(&"a bug in the library ended the call");
            failed
        }
    }
}
