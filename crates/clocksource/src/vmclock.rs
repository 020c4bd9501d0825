//! VMClock: the hypervisor says when it disturbed the guest's clock (live migration, restore from a snapshot).
//!
//! The device `/dev/vmclock0` is one page: magic, size, version, a sequence count that is odd during an update, and a disruption
//! marker that changes (by any amount) when the guest's clock can no longer be trusted. Only the marker is read here.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The device on guests that have one.
const PATH: &str = "/dev/vmclock0";
const MAGIC: u32 = 0x4b4c_4356;
/// Reads that an update may disturb.
const TRIES: usize = 100;

/// The device.
#[derive(Debug)]
pub struct VmClock {
    file: File,
}

impl VmClock {
    /// Opens the device.
    ///
    /// # Errors
    /// The system's error; most machines have no such device.
    pub fn open() -> io::Result<Self> {
        Self::open_at(Path::new(PATH))
    }
    /// Opens the device at a path.
    ///
    /// # Errors
    /// The system's error, or `InvalidData` where it is something else.
    pub fn open_at(path: &Path) -> io::Result<Self> {
        let clock = VmClock { file: File::open(path)? };
        clock.disruption_marker()?;
        Ok(clock)
    }
    /// The marker: two different values at two times mean that the clock was disturbed in between.
    ///
    /// # Errors
    /// The system's error, or `InvalidData`.
    pub fn disruption_marker(&self) -> io::Result<u64> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("VMClock: {what}"));
        for _ in 0..TRIES {
            let (mut page, mut again) = ([0; 24], [0; 24]);
            self.file.read_exact_at(&mut page, 0)?;
            self.file.read_exact_at(&mut again, 0)?;
            let word = |p: &[u8; 24], at: usize| u32::from_le_bytes([p[at], p[at + 1], p[at + 2], p[at + 3]]);
            if word(&page, 0) != MAGIC {
                return Err(invalid("wrong magic number"));
            }
            let sequence = word(&page, 12);
            if sequence & 1 == 0 && page == again {
                return Ok(u64::from(word(&page, 20)) << 32 | u64::from(word(&page, 16)));
            }
        }
        Err(invalid("stuck in an update"))
    }
}
