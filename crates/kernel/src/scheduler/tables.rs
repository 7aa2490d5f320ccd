//! The map of the scheduler's large tables, made here instead of by libbpf.
//!
//! libbpf copies the initial contents of each map of variables into the kernel, here 15 MB
//! of zeros. A map is zero when it is made, so nothing needs to be copied.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

use libbpf_rs::{MapHandle, MapType, libbpf_sys};

use crate::prorata_skeleton::{OpenProrataSkel, ProrataSkel, types};

/// The section of `bpf/rights.h`. The skeleton knows the map by this name.
const SECTION: &str = ".bss.tables";

pub struct Tables(MapHandle);

impl Tables {
    /// Makes the map that the skeleton will be loaded with.
    pub fn replace_map(open: &mut OpenProrataSkel<'_>) -> libbpf_rs::Result<Self> {
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            map_flags: libbpf_sys::BPF_F_MMAPABLE,
            ..Default::default()
        };
        let size = size_of::<types::bss_tables>() as u32;
        let map = MapHandle::create(MapType::Array, Some(SECTION), 4, size, 1, &options)?;
        open.maps.bss_tables.reuse_fd(map.as_fd())?;
        Ok(Self(map))
    }

    /// Makes the skeleton's variables those of the map, as libbpf does for maps of its own.
    pub fn map_into(self, skeleton: &mut ProrataSkel<'_>) -> libbpf_rs::Result<()> {
        let tables = skeleton.maps.bss_tables_data.as_deref_mut();
        let address: *mut types::bss_tables = tables.expect("the scheduler has tables");
        // SAFETY: libbpf has mapped as many bytes there for these variables, and unmaps them
        // by itself; nothing refers to them yet.
        let mapped = unsafe {
            libc::mmap(
                address.cast(),
                size_of::<types::bss_tables>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED,
                self.0.as_fd().as_raw_fd(),
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        Ok(())
    }
}
