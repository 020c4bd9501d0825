//! Where scenarios lie.

use super::Scenario;
use std::path::{Path, PathBuf};

/// The folder of all scenarios.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// The scenarios that a name means: a folder (`fast`), one file (`fast/crashes`), or a path to one.
///
/// # Errors
/// There is none, or one of them cannot be read.
pub fn find(name: &str) -> Result<Vec<Scenario>, String> {
    let inside = folder().join(name);
    if inside.is_dir() {
        return all_in(&inside, name);
    }
    let named = folder().join(format!("{}.toml", name.trim_end_matches(".toml")));
    let path = if named.is_file() { named } else { PathBuf::from(name) };
    Ok(vec![read(&path, name.trim_end_matches(".toml"))?])
}

fn all_in(folder: &Path, name: &str) -> Result<Vec<Scenario>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    // The order of a folder is the file system's.
    paths.sort();
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    paths.iter().map(|path| read(path, &format!("{name}/{}", stem(path)))).collect()
}

fn read(path: &Path, name: &str) -> Result<Scenario, String> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        format!("{}: {e}; a scenario is a file or folder below {}, or a path", path.display(), folder().display())
    })?;
    Scenario::read(name, &text)
}
