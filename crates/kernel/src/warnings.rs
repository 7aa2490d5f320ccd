//! What libbpf complains of, the verifier's log among it, for the error that
//! comes of it. It prints to standard error unless told otherwise.

use std::cell::RefCell;

use libbpf_rs::{PrintLevel, set_print};

thread_local! {
    static WARNINGS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// From now on collects the warnings of each thread, and drops what is less.
pub fn begin() {
    set_print(Some((PrintLevel::Warn, collect)));
    take();
}

/// What this thread was warned of since.
pub fn take() -> String {
    WARNINGS.take()
}

fn collect(_level: PrintLevel, text: String) {
    WARNINGS.with_borrow_mut(|warnings| warnings.push_str(&text));
}
