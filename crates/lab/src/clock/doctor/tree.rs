//! Files for a test, below a directory of its own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Tree(PathBuf);

impl Tree {
    /// These files; `name -> target` makes a link.
    pub fn new(files: &[(&str, &str)]) -> Tree {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let tree = Tree(std::env::temp_dir().join(format!("tb-doctor-{}-{n}", std::process::id())));
        for (name, text) in files {
            let link = text.strip_prefix("-> ");
            let path = tree.0.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            match link {
                Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
                None => std::fs::write(path, text).unwrap(),
            }
        }
        tree
    }
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
