//! The shape of a machine, and QEMU's arguments for it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// How many CPUs a machine may have.
pub const CPUS: std::ops::RangeInclusive<u32> = 1..=64;
/// How many mebibytes of memory a machine may have.
pub const MEMORY_MIB: std::ops::RangeInclusive<u32> = 256..=16384;

/// How many nanoseconds an instruction may last where the clock counts
/// instructions: powers of two.
pub const INSTRUCTION_NS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Name by which the guest mounts the host's files.
pub const HOST_TAG: &str = "host";

/// The shape of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VirtualMachine {
    /// The kernel's image.
    pub kernel: PathBuf,
    /// The number of CPUs, within [`CPUS`].
    pub cpus: u32,
    /// The number of sockets, which hold the same number of CPUs each, with a
    /// last-level cache of their own.
    pub sockets: u32,
    /// The size of the memory, within [`MEMORY_MIB`].
    pub memory_mib: u32,
    /// If given, the clock counts instructions instead of time. Each lasts so
    /// many nanoseconds, one of [`INSTRUCTION_NS`].
    pub instruction_ns: Option<u32>,
}

/// Why there is no machine of a shape.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MachineError {
    /// The sockets would not hold the same number of CPUs each.
    #[error(
        "{cpus} CPUs in {sockets} sockets: each socket holds as many, at least one, so give a \
         number of sockets that divides that of the CPUs"
    )]
    Sockets {
        /// The number of CPUs.
        cpus: u32,
        /// The number of sockets.
        sockets: u32,
    },
}

/// The executor of the guest's instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accelerator {
    /// The processor.
    Kvm,
    /// QEMU's software.
    Software,
}

/// Descriptors and files that QEMU is started with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connections {
    /// The archive with the first file system.
    pub initramfs: PathBuf,
    /// Where the kernel's log goes.
    pub log: PathBuf,
    /// A connected socket to the server of the host's files.
    pub files_fd: i32,
}

impl VirtualMachine {
    /// Checks that there is a machine of this shape.
    pub fn check(&self) -> Result<(), MachineError> {
        let &VirtualMachine { cpus, sockets, .. } = self;
        // Zero divides nothing.
        if cpus.checked_rem(sockets) == Some(0) {
            return Ok(());
        }
        Err(MachineError::Sockets { cpus, sockets })
    }

    /// Arguments for QEMU, whose standard output is the channel.
    pub fn arguments(&self, accelerator: Accelerator, connections: &Connections) -> Vec<OsString> {
        let memory = self.memory_mib;
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |words: &str| arguments.extend(words.split(' ').map(OsString::from));
        add("-nodefaults -no-user-config -no-reboot -display none");
        add("-machine pc,memory-backend=memory");
        // The server of the host's files reads and writes the guest's memory.
        add(&format!(
            "-object memory-backend-memfd,id=memory,size={memory}M,share=on"
        ));
        add(&format!(
            "-m {memory}M -smp {},sockets={}",
            self.cpus, self.sockets
        ));
        add(match accelerator {
            Accelerator::Kvm => "-accel kvm -cpu host",
            // Paging with five levels makes every miss dearer, for nothing.
            Accelerator::Software => "-accel tcg -cpu max,la57=off",
        });
        if let Some(instruction_ns) = self.instruction_ns {
            add(&format!("-icount shift={}", instruction_ns.ilog2()));
        }
        add("-device virtio-serial-pci -chardev stdio,id=channel,signal=off");
        add(&format!(
            "-device virtserialport,chardev=channel,name={}",
            crate::channel::PORT
        ));
        add(&format!(
            "-chardev socket,id=files,fd={} -device vhost-user-fs-pci,chardev=files,tag={HOST_TAG}",
            connections.files_fd
        ));
        add("-append");
        arguments.push(COMMAND_LINE.into());
        arguments.extend(["-kernel".into(), self.kernel.clone().into()]);
        arguments.extend(["-initrd".into(), connections.initramfs.clone().into()]);
        arguments.extend(["-chardev".into(), file("log", &connections.log)]);
        arguments.extend(["-serial".into(), "chardev:log".into()]);
        arguments
    }
}

/// A panic ends the machine at once. The kernel's trial of its timer fails where a
/// busy host delays QEMU, and the timer works, so there is no trial. The random numbers come from the
/// processor, as a machine that has just booted has no other source of them.
/// Mitigations make the emulated processor slower and protect nothing here: all
/// programs of a machine have one owner. Random addresses make it slower too:
/// QEMU keeps translated code by address, and would translate it for each process.
const COMMAND_LINE: &str = "console=ttyS0 loglevel=4 panic=-1 no_timer_check random.trust_cpu=on mitigations=off norandmaps";

/// QEMU ends the path at a comma unless the comma is doubled.
fn file(id: &str, path: &Path) -> OsString {
    let mut words = OsString::from(format!("file,id={id},path="));
    words.push(path.to_string_lossy().replace(',', ",,"));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(machine: &VirtualMachine, accelerator: Accelerator) -> String {
        let connections = Connections {
            initramfs: "/proc/self/fd/4".into(),
            log: "/a,b".into(),
            files_fd: 7,
        };
        let words = machine.arguments(accelerator, &connections);
        words.join(" ".as_ref()).into_string().unwrap()
    }

    fn machine() -> VirtualMachine {
        VirtualMachine {
            kernel: "/boot/vmlinuz".into(),
            cpus: 3,
            sockets: 1,
            memory_mib: 700,
            instruction_ns: None,
        }
    }

    #[test]
    fn sockets_hold_the_same_number_of_cpus_each() {
        let checked = |cpus, sockets| {
            let machine = VirtualMachine {
                cpus,
                sockets,
                ..machine()
            };
            machine.check()
        };
        for (cpus, sockets) in [(1, 1), (4, 1), (4, 2), (4, 4), (64, 64)] {
            assert_eq!(checked(cpus, sockets), Ok(()));
        }
        for (cpus, sockets) in [(4, 0), (4, 3), (4, 5), (64, 65), (64, u32::MAX)] {
            let refused = Err(MachineError::Sockets { cpus, sockets });
            assert_eq!(checked(cpus, sockets), refused);
        }
    }

    #[test]
    fn arguments_carry_the_shape_of_the_machine() {
        let mut machine = machine();
        let software = arguments(&machine, Accelerator::Software);
        for words in [
            "-smp 3,sockets=1",
            "-m 700M",
            "size=700M",
            "-accel tcg",
            "-kernel /boot/vmlinuz",
            "-initrd /proc/self/fd/4",
            "path=/a,,b",
            "fd=7",
        ] {
            assert!(software.contains(words), "no {words} in {software}");
        }
        assert!(!software.contains("icount"));
        assert!(arguments(&machine, Accelerator::Kvm).contains("-accel kvm"));
        machine.instruction_ns = Some(1);
        assert!(arguments(&machine, Accelerator::Software).contains("-icount shift=0"));
        machine.instruction_ns = Some(8);
        assert!(arguments(&machine, Accelerator::Software).contains("-icount shift=3"));
    }
}
