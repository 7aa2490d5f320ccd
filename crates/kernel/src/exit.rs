//! Why the kernel unloaded a scheduler: the other side of `bpf/exit.bpf.h`.

use crate::KernelError;
use crate::floor_skeleton::types;

const _: () = assert!(size_of::<types::exit_record>() == 1160);

/// The error that the record speaks of; nothing while the scheduler is loaded.
pub fn ejection(name: &'static str, record: &types::exit_record) -> Option<KernelError> {
    (record.kind != 0).then(|| KernelError::Ejected {
        name,
        reason: text(&record.reason),
        message: text(&record.message),
    })
}

/// What stands before the final zero.
fn text(bytes: &[i8]) -> String {
    let bytes: Vec<u8> = bytes
        .iter()
        .map(|byte| byte.cast_unsigned())
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
