//! The machine as QEMU's arguments.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// CPUs that a machine may have.
pub const CPUS: std::ops::RangeInclusive<u32> = 1..=64;
/// Mebibytes of memory that a machine may have.
pub const MEMORY_MIB: std::ops::RangeInclusive<u32> = 256..=16384;

/// Nanoseconds that an instruction may last where the clock counts them: powers
/// of two.
pub const INSTRUCTION_NS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Name by which the guest mounts the host's files.
pub const HOST_TAG: &str = "host";

/// What the machine is like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// The kernel's image.
    pub kernel: PathBuf,
    /// The kernel's module for overlays, if they are not built in.
    pub overlay_module: Option<PathBuf>,
    /// How many CPUs, within [`CPUS`].
    pub cpus: u32,
    /// Sockets that hold as many of these each, with a last-level cache of their own.
    pub sockets: u32,
    /// How much memory, within [`MEMORY_MIB`].
    pub memory_mib: u32,
    /// The clock counts instructions, each of which lasts so many nanoseconds,
    /// instead of time. A power of two, see [`INSTRUCTION_NS`].
    pub instruction_ns: Option<u32>,
}

/// A machine that cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MachineError {
    /// Sockets that do not hold as many CPUs each.
    #[error(
        "{cpus} CPUs in {sockets} sockets: each socket holds as many, at least one, so give a \
         number of sockets that divides that of the CPUs"
    )]
    Sockets {
        /// How many CPUs.
        cpus: u32,
        /// In how many sockets.
        sockets: u32,
    },
}

/// What executes the guest's instructions.
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

impl Machine {
    /// That it can be built.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), MachineError> {
        let &Machine { cpus, sockets, .. } = self;
        // Zero divides nothing.
        if cpus.checked_rem(sockets) == Some(0) {
            return Ok(());
        }
        Err(MachineError::Sockets { cpus, sockets })
    }

    /// Arguments for QEMU. Its standard output is the channel.
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

/// A panic ends the machine at once. The random numbers come from the
/// processor, as nothing else has happened yet that they could come from.
/// Mitigations would only make the emulated processor slower; nobody else's
/// secrets are in the machine. So would programs at random addresses: what QEMU
/// translates is kept by address, and would be translated for each process anew.
const COMMAND_LINE: &str =
    "console=ttyS0 loglevel=4 panic=-1 random.trust_cpu=on mitigations=off norandmaps";

/// QEMU takes a comma for the end of the path unless there are two.
fn file(id: &str, path: &Path) -> OsString {
    let mut words = OsString::from(format!("file,id={id},path="));
    words.push(path.to_string_lossy().replace(',', ",,"));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(machine: &Machine, accelerator: Accelerator) -> String {
        let connections = Connections {
            initramfs: "/proc/self/fd/4".into(),
            log: "/a,b".into(),
            files_fd: 7,
        };
        let words = machine.arguments(accelerator, &connections);
        words.join(" ".as_ref()).into_string().unwrap()
    }

    fn machine() -> Machine {
        Machine {
            kernel: "/boot/vmlinuz".into(),
            overlay_module: None,
            cpus: 3,
            sockets: 1,
            memory_mib: 700,
            instruction_ns: None,
        }
    }

    #[test]
    fn sockets_hold_as_many_cpus_each() {
        let checked = |cpus, sockets| {
            let machine = Machine {
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
    fn arguments_say_what_the_machine_is_like() {
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
