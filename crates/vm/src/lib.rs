//! A virtual machine for a command: a Linux kernel in QEMU that sees the host's
//! files. There a scheduler can be loaded although the host's kernel has no
//! sched_ext, and without a risk for the host.
//!
//! [`run::run`] runs a [`job::Job`]: it builds an archive with this program as
//! init ([`initramfs`]), starts QEMU and a server of the host's files
//! ([`process`]), and passes on the [`channel::Frame`]s that the guest's init
//! ([`init`]) sends. The command's writes stay in the guest's memory.
//! [`kernels`] fetches kernels from the host's Debian mirror.

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
