//! The port to the host.

use std::fs::{self, File};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::{Port, Result, step};
use crate::channel::PORT;

/// The kernel learns a port's name from the host some time after it finds the
/// port.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);

pub fn open() -> Result<Port> {
    for _ in 0..TRIES {
        if let Some(device) = device() {
            let file = File::options().write(true).open(&device);
            return step(&format!("open {device}"), file).map(|file| Arc::new(Mutex::new(file)));
        }
        thread::sleep(PAUSE);
    }
    Err(format!(
        "the machine has no port named {PORT}: its kernel needs CONFIG_VIRTIO_CONSOLE and CONFIG_VIRTIO_PCI built in"
    ))
}

fn device() -> Option<String> {
    for entry in fs::read_dir("/sys/class/virtio-ports").ok()?.flatten() {
        let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
        if name.trim_end() == PORT {
            return Some(format!("/dev/{}", entry.file_name().to_str()?));
        }
    }
    None
}
