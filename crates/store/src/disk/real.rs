//! A directory of the real file system.

use super::{Disk, DiskError, DiskFile, Room};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Zeroes are written in pieces of this many bytes.
const ZERO_CHUNK: usize = 1 << 20;

/// A directory.
pub struct RealDisk {
    dir: PathBuf,
}

struct RealFile {
    file: File,
    name: String,
}

fn failed(doing: &'static str, file: &str, cause: &io::Error) -> DiskError {
    match cause.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => DiskError::Full,
        ErrorKind::NotFound => DiskError::NotFound(file.into()),
        _ => DiskError::Failed { doing, file: file.into(), cause: cause.to_string() },
    }
}

impl RealDisk {
    /// The directory `dir`, which is created if it is missing.
    ///
    /// # Errors
    /// [`DiskError::Failed`], [`DiskError::Full`].
    pub fn open(dir: &Path) -> Result<Self, DiskError> {
        let name = dir.display().to_string();
        std::fs::create_dir_all(dir).map_err(|e| failed("create", &name, &e))?;
        if let Some(parent) = dir.parent().filter(|p| !p.as_os_str().is_empty()) {
            sync_dir(parent)?;
        }
        Ok(RealDisk { dir: dir.to_path_buf() })
    }

    /// The room on its file system.
    ///
    /// # Errors
    /// [`DiskError::Failed`].
    pub fn room(&self) -> Result<Room, DiskError> {
        room(&self.dir).map_err(|e| failed("measure", &self.dir.display().to_string(), &e))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// The room on the file system of a path.
pub(crate) fn room(path: &Path) -> io::Result<Room> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut stats = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path is a C string, and the call fills the structure when it returns 0.
    let stats = unsafe {
        if libc::statvfs(path.as_ptr(), stats.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        stats.assume_init()
    };
    let bytes = |blocks: libc::fsblkcnt_t| blocks.saturating_mul(stats.f_frsize);
    Ok(Room { free: bytes(stats.f_bavail), total: bytes(stats.f_blocks) })
}

fn sync_dir(dir: &Path) -> Result<(), DiskError> {
    let name = dir.display().to_string();
    File::open(dir).and_then(|d| d.sync_all()).map_err(|e| failed("sync", &name, &e))
}

/// Allocates `bytes` and fills them with zeroes, so that a later overwrite changes no metadata. A chunk is on the disk before the next is written: who syncs
/// a little on the same disk waits for what is on its way there, and that is no more than a chunk then.
fn fill(file: &File, bytes: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as `file` is borrowed; the call touches no memory of ours.
    let code = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes.cast_signed()) };
    if code != 0 && code != libc::EOPNOTSUPP && code != libc::EINVAL {
        return Err(io::Error::from_raw_os_error(code));
    }
    let zeroes = vec![0; ZERO_CHUNK];
    let mut at = 0;
    while at < bytes {
        let n = usize::try_from(bytes - at).unwrap_or(ZERO_CHUNK).min(ZERO_CHUNK);
        file.write_all_at(&zeroes[..n], at)?;
        file.sync_data()?;
        at += n as u64;
    }
    file.sync_all()
}

/// Allocates a file of so many bytes, and says it once they are the file's for good; nothing is left behind where there is no room.
pub(crate) fn set_aside(path: &Path, bytes: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let filled = fill(&file, bytes);
    if filled.is_err() {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(path);
    }
    filled
}

/// Gives such a file up.
pub(crate) fn give_back(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

impl Disk for RealDisk {
    fn list(&self) -> Result<Vec<String>, DiskError> {
        let name = self.dir.display().to_string();
        let entries = std::fs::read_dir(&self.dir).map_err(|e| failed("list", &name, &e))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| failed("list", &name, &e))?;
            names.extend(entry.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
        let file = OpenOptions::new().read(true).write(true).open(self.path(name));
        let file = file.map_err(|e| failed("open", name, &e))?;
        Ok(Arc::new(RealFile { file, name: name.into() }))
    }

    fn create_zeroed(&self, name: &str, bytes: u64) -> Result<Arc<dyn DiskFile>, DiskError> {
        let path = self.path(name);
        // What does not fit is not begun: it would take the room that others need meanwhile.
        if room(&self.dir).is_ok_and(|room| room.free < bytes) {
            return Err(DiskError::Full);
        }
        let create = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
        let file = create.map_err(|e| failed("create", name, &e))?;
        if let Err(e) = fill(&file, bytes) {
            drop(file);
            // The space goes back; if that fails too, the first error is the one to tell.
            let _ = std::fs::remove_file(&path);
            return Err(failed("allocate", name, &e));
        }
        Ok(Arc::new(RealFile { file, name: name.into() }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        std::fs::rename(self.path(from), self.path(to)).map_err(|e| failed("rename", from, &e))
    }

    fn delete(&self, name: &str) -> Result<(), DiskError> {
        match std::fs::remove_file(self.path(name)) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(failed("delete", name, &e)),
            _ => Ok(()),
        }
    }

    fn sync_names(&self) -> Result<(), DiskError> {
        sync_dir(&self.dir)
    }
}

impl DiskFile for RealFile {
    fn size(&self) -> Result<u64, DiskError> {
        self.file.metadata().map(|m| m.len()).map_err(|e| failed("measure", &self.name, &e))
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.file.write_all_at(data, offset).map_err(|e| failed("write", &self.name, &e))
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError> {
        self.file.read_exact_at(into, offset).map_err(|e| failed("read", &self.name, &e))
    }

    fn shrink(&self, bytes: u64) -> Result<(), DiskError> {
        self.file.set_len(bytes).and_then(|()| self.file.sync_all()).map_err(|e| failed("shrink", &self.name, &e))
    }

    fn sync_data(&self) -> Result<(), DiskError> {
        self.file.sync_data().map_err(|e| match failed("sync", &self.name, &e) {
            // A sync that fails for lack of space has lost data like any other.
            DiskError::Full => DiskError::Failed { doing: "sync", file: self.name.clone(), cause: e.to_string() },
            other => other,
        })
    }
}
