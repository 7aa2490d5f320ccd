//! libbpf's warnings, with the verifier's log, for the error that follows. libbpf would print
//! them to standard error.

use std::cell::RefCell;

use libbpf_rs::{PrintLevel, set_print};

thread_local! {
    static WARNINGS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Collects the warnings of each thread from now on, and drops lesser messages.
pub fn begin() {
    set_print(Some((PrintLevel::Warn, collect)));
    take();
}

/// This thread's warnings since then.
pub fn take() -> String {
    WARNINGS.take()
}

fn collect(_level: PrintLevel, text: String) {
    WARNINGS.with_borrow_mut(|warnings| warnings.push_str(&text));
}
