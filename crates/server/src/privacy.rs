//! Files that only their owner may read: the store holds everybody's rows.
//!
//! New files are private because the process says so before it makes any ([`make_files_private`]): also those that libraries make. A store
//! that an older version made, or somebody opened up, is closed again when it is opened ([`tighten`]).

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What nobody but the owner may do.
const OTHERS: u32 = 0o077;
/// A directory in which everybody has files.
const STICKY: u32 = 0o1000;

/// From now on what this process makes is closed to others: directories are 0700, files 0600. Where something is meant for others
/// (our end of chronyd's socket), its mode is set by name. Call it before any thread starts.
pub fn make_files_private() {
    // SAFETY: the call only sets the mask of the process, and cannot fail.
    unsafe { libc::umask(OTHERS as libc::mode_t) };
}

/// Closes a directory to others, and nothing in it; gives whether it was open. One that is shared on purpose (its sticky bit says so, as `/tmp`'s)
/// stays as it is.
///
/// # Errors
/// The system's: the directory belongs to somebody else, most likely.
pub fn tighten_one(path: &Path) -> io::Result<usize> {
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & OTHERS == 0 || mode & STICKY != 0 {
        return Ok(0);
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode & 0o7777 & !OTHERS))?;
    Ok(1)
}

/// Closes a file, or a directory with all in it, to others; gives how many were open to them. Links are not followed.
///
/// # Errors
/// The system's: the file belongs to somebody else, most likely.
pub fn tighten(path: &Path) -> io::Result<usize> {
    let meta = match std::fs::symlink_metadata(path) {
        // A table or a segment that was just deleted.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
        other => other?,
    };
    if meta.is_symlink() {
        return Ok(0);
    }
    let mode = meta.permissions().mode();
    let mut tightened = 0;
    if mode & OTHERS != 0 {
        std::fs::set_permissions(path, Permissions::from_mode(mode & 0o7777 & !OTHERS))?;
        tightened += 1;
    }
    if meta.is_dir() {
        for entry in std::fs::read_dir(path)? {
            tightened += tighten(&entry?.path())?;
        }
    }
    Ok(tightened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_open_is_closed() {
        let dir = std::env::temp_dir().join(format!("timeball-privacy-{}", std::process::id()));
        let inner = dir.join("engine").join("tables");
        std::fs::create_dir_all(&inner).unwrap();
        let (file, foreign) = (inner.join("1"), dir.with_extension("foreign"));
        std::fs::write(&file, "rows").unwrap();
        std::fs::write(&foreign, "not ours").unwrap();
        std::os::unix::fs::symlink(&foreign, dir.join("link")).unwrap();
        for (path, mode) in [(&dir, 0o755), (&inner, 0o750), (&file, 0o644), (&foreign, 0o644)] {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert!(tighten(&dir).unwrap() >= 3);
        assert_eq!((mode(&dir), mode(&inner), mode(&file), mode(&foreign)), (0o700, 0o700, 0o600, 0o644));
        assert_eq!(tighten(&dir).unwrap(), 0, "nothing is left to do");
        std::fs::remove_dir_all(&dir).unwrap();
        std::fs::remove_file(&foreign).unwrap();
    }
}
