//! Why the kernel unloaded a scheduler: the other side of `bpf/exit.bpf.h`.

use crate::{KernelError, floor_skeleton, prorata_skeleton};

const _: () = assert!(size_of::<floor_skeleton::types::exit_record>() == 1160);
const _: () = assert!(size_of::<prorata_skeleton::types::exit_record>() == 1160);

/// The error that a record with these fields describes; `None` while the scheduler is
/// loaded.
pub fn ejection(
    name: &'static str,
    kind: u64,
    reason: &[i8],
    message: &[i8],
) -> Option<KernelError> {
    (kind != 0).then(|| KernelError::Ejected {
        name,
        reason: text(reason),
        message: text(message),
    })
}

/// The text before the final zero.
fn text(bytes: &[i8]) -> String {
    let bytes: Vec<u8> = bytes
        .iter()
        .map(|byte| byte.cast_unsigned())
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
