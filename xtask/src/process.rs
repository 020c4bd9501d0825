//! What a process and a directory hold.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes in one of the system's blocks, as `stat` counts them.
const BLOCK_BYTES: u64 = 512;

/// Forgets the greatest memory that a process had so far.
pub fn reset_peak(pid: u32) -> Result<(), String> {
    let path = format!("/proc/{pid}/clear_refs");
    fs::write(&path, "5").map_err(|e| format!("{path}: {e}"))
}

/// The greatest memory that a process had in the machine's, bytes.
pub fn peak_bytes(pid: u32) -> Result<u64, String> {
    memory(pid, "VmHWM:")
}

/// The memory of a process in the machine's, bytes.
pub fn resident_bytes(pid: u32) -> Result<u64, String> {
    memory(pid, "VmRSS:")
}

fn memory(pid: u32, name: &str) -> Result<u64, String> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    line_bytes(&text, name).ok_or_else(|| format!("{path} does not say {name}"))
}

fn line_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// What a directory takes of the disk. Files that go while it is walked count nothing.
pub fn disk_bytes(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => disk_bytes(&entry.path()),
        Ok(meta) => meta.blocks() * BLOCK_BYTES,
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read() {
        let text = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 1024 kB\n";
        assert_eq!((line_bytes(text, "VmHWM:"), line_bytes(text, "VmRSS:")), (Some(2 << 20), Some(1 << 20)));
        assert_eq!(line_bytes(text, "VmSwap:"), None);
        let own = std::process::id();
        assert!(resident_bytes(own).unwrap() <= peak_bytes(own).unwrap());
    }

    #[test]
    fn a_directory_is_what_its_files_take() {
        let dir = std::env::temp_dir().join(format!("timeball-disk-{}", std::process::id()));
        fs::create_dir_all(dir.join("below")).unwrap();
        fs::write(dir.join("below/file"), vec![1; 100_000]).unwrap();
        let bytes = disk_bytes(&dir);
        fs::remove_dir_all(&dir).unwrap();
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
        assert_eq!(disk_bytes(&dir), 0);
    }
}
