//! A cluster's folder: empty, its own, and gone with it.
//!
//! A lab that is killed removes nothing, and what lies in `/dev/shm` takes memory until somebody does. So each folder has a file that its lab keeps
//! locked, and who makes a folder removes those beside it that nobody locks and whose lab's process is gone.

use super::{ClusterError, io_error};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// First letters of a folder's name; the process and a number follow.
const NAME: &str = "timeball-lab";
/// The file that is locked.
const LOCK: &str = "lab.lock";

/// The folder; it is removed with this value.
pub(super) struct Folder {
    path: PathBuf,
    /// Closed with this value.
    _lock: File,
}

impl Folder {
    /// Makes one below `dir`, in which nothing is left of runs that were killed.
    pub fn new(dir: &Path) -> Result<Folder, ClusterError> {
        sweep(dir);
        let name = |n: u32| dir.join(format!("{NAME}-{}-{n}", std::process::id()));
        let path = (0..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(u32::MAX));
        let failed = |path: &Path| io_error(path.display().to_string());
        fs::create_dir_all(&path).map_err(failed(&path))?;
        let lock = File::create(path.join(LOCK)).and_then(|file| file.lock().map(|()| file));
        lock.map(|lock| Folder { path: path.clone(), _lock: lock }).map_err(failed(&path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The process in a folder's name.
fn process(name: &str) -> Option<u32> {
    let (process, number) = name.strip_prefix(NAME)?.strip_prefix('-')?.split_once('-')?;
    number.parse::<u32>().ok()?;
    process.parse().ok()
}

/// Removes what nobody has. Where that fails somebody else's folder is left, or a run leaves a little more than it should: no reason not to measure.
fn sweep(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(process) else { continue };
        let runs = Path::new("/proc").join(process.to_string()).exists();
        // A lab in another container has the lock, and another number.
        let locked = || File::open(entry.path().join(LOCK)).is_ok_and(|file| file.try_lock().is_err());
        if !runs && entry.file_type().is_ok_and(|kind| kind.is_dir()) && !locked() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Folder, LOCK, process};
    use std::fs::{self, File};

    #[test]
    fn what_a_killed_run_left_goes_and_nothing_else() {
        let dir = std::env::temp_dir().join(format!("timeball-folder-test-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        // No process has a number beyond the kernel's greatest (2^22).
        let [dead, locked, other] =
            ["timeball-lab-4294967295-0", "timeball-lab-4294967295-1", "timeball-lab-kept-index-1"]
                .map(|name| dir.join(name));
        for path in [&dead, &locked, &other] {
            fs::create_dir_all(path.join("n1")).unwrap();
        }
        File::create(dead.join(LOCK)).unwrap();
        let lock = File::create(locked.join(LOCK)).unwrap();
        lock.lock().unwrap();
        let first = Folder::new(&dir).unwrap();
        assert!(!dead.exists() && locked.exists() && other.exists());
        let second = Folder::new(&dir).unwrap();
        assert!(first.path() != second.path() && first.path().exists(), "this process lives");
        let path = first.path().to_owned();
        lock.unlock().unwrap();
        drop(first);
        assert!(!path.exists());
        drop(second);
        Folder::new(&dir).unwrap();
        assert!(!locked.exists(), "nobody locks it any more");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn names_are_read_back() {
        assert_eq!(process("timeball-lab-12-3"), Some(12));
        for other in ["timeball-lab-kept-bounds-7", "timeball-lab-7", "timeball-lab-7-x", "timeball-lab-reading-7"] {
            assert_eq!(process(other), None, "{other}");
        }
    }
}
