//! A machine of one's own for a command: a Linux kernel in QEMU that sees the
//! host's files, so that schedulers can be loaded where the host's kernel has
//! no sched_ext, or where nobody wants to try that on the host.
//!
//! [`run::run`] runs a [`job::Job`]: it builds an archive with this program as
//! init ([`initramfs`]), starts QEMU and a server of the host's files
//! ([`process`]), and passes on the [`channel::Frame`]s that the guest's init
//! ([`init`]) sends. What the command writes goes to the guest's memory only.
//! [`kernels`] fetches kernels from the machine's own Debian mirror.

pub mod channel;
pub mod cpio;
pub mod init;
pub mod initramfs;
pub mod job;
pub mod kernels;
mod kvm;
pub mod libraries;
pub mod machine;
pub mod process;
pub mod run;
