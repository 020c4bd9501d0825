//! chronyd's settings as the daemon reads them: a file, and the files that it names (chrony.conf(5)).
//!
//! | line | means |
//! | --- | --- |
//! | `include PATTERN` | each file that the pattern matches, here and now |
//! | `confdir DIR ...` | the `*.conf` files of these directories by name; of two with one name that of the earlier directory |
//! | `sourcedir DIR ...` | likewise the `*.sources` files |
//!
//! A line that begins with `#`, `%`, `!` or `;` is a comment. Directives may be written in any case. What is not there is skipped, as
//! the daemon skips it; what is there and cannot be read is said.
//!
//! **Caveats.** Patterns with brackets or braces are not followed, and said. What `chronyc` changed since the start is in no file.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Files at most; more are a loop or a mistake.
const FILES_MAX: usize = 128;
/// How deep files may include files: chronyd's own limit.
const DEPTH_MAX: usize = 10;

/// One line that is a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// The file that it stands in; empty for the daemon's command line.
    pub file: PathBuf,
    /// Its words.
    pub words: Vec<String>,
}

/// Everything that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The files, in the order of reading, as the daemon names them.
    pub files: Vec<PathBuf>,
    /// Their directives, in the order in which they count.
    pub directives: Vec<Directive>,
    /// What could not be read, and why.
    pub troubles: Vec<String>,
}

impl Settings {
    /// The settings that begin with `file`. The daemon's `/` is `root` here.
    pub fn read(root: &Path, file: &Path) -> Settings {
        let mut settings = Settings::default();
        settings.read_file(root, file, 0);
        settings
    }
    /// Settings that are written down already: the daemon's command line, which may include files too.
    pub fn of_lines<'a>(root: &Path, lines: impl IntoIterator<Item = &'a str>) -> Settings {
        let mut settings = Settings::default();
        lines.into_iter().for_each(|line| settings.read_line(root, Path::new(""), line, 0));
        settings
    }

    /// The number that counts for a directive with one argument: the last one.
    pub fn number(&self, directive: &str) -> Option<(f64, &Path)> {
        let line = self.named(directive).last()?;
        Some((line.words.get(1)?.parse().ok()?, &line.file))
    }
    /// The lines of a directive.
    pub fn named(&self, directive: &str) -> impl Iterator<Item = &Directive> {
        self.directives.iter().filter(move |d| d.words[0].eq_ignore_ascii_case(directive))
    }

    fn read_file(&mut self, root: &Path, file: &Path, depth: usize) {
        if self.files.len() == FILES_MAX || depth > DEPTH_MAX {
            self.troubles.push(format!("{}: files include files without an end", file.display()));
            return;
        }
        match std::fs::read(below(root, file)) {
            Ok(bytes) => {
                self.files.push(file.to_owned());
                let text = String::from_utf8_lossy(&bytes);
                text.lines().for_each(|line| self.read_line(root, file, line, depth));
            }
            Err(e) => self.troubles.push(format!("{}: {e}", file.display())),
        }
    }
    fn read_line(&mut self, root: &Path, file: &Path, line: &str, depth: usize) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let Some(first) = words.first().filter(|w| !w.starts_with(['#', '%', '!', ';'])) else { return };
        let more = match first.to_ascii_lowercase().as_str() {
            "include" => words.iter().skip(1).flat_map(|pattern| self.matching(root, pattern)).collect(),
            "confdir" => self.listed(root, &words[1..], "conf"),
            "sourcedir" => self.listed(root, &words[1..], "sources"),
            _ => return self.directives.push(Directive { file: file.to_owned(), words }),
        };
        more.iter().for_each(|file| self.read_file(root, file, depth + 1));
    }
    /// The names in a directory; none where it does not exist.
    fn names(&mut self, root: &Path, directory: &Path) -> Vec<String> {
        let listed = std::fs::read_dir(below(root, directory)).and_then(|entries| {
            entries.map(|e| Ok(e?.file_name().to_string_lossy().into_owned())).collect::<io::Result<Vec<_>>>()
        });
        let mut names = listed.unwrap_or_else(|e| {
            if !matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
                self.troubles.push(format!("{}: {e}", directory.display()));
            }
            Vec::new()
        });
        names.sort_unstable();
        names
    }
    fn listed(&mut self, root: &Path, directories: &[String], ending: &str) -> Vec<PathBuf> {
        let mut found = BTreeMap::new();
        for directory in directories.iter().map(Path::new) {
            for name in self.names(root, directory) {
                if Path::new(&name).extension().is_some_and(|e| e == ending) {
                    found.entry(name.clone()).or_insert_with(|| directory.join(name));
                }
            }
        }
        found.into_values().collect()
    }
    /// The paths that exist and match a pattern of `*` and `?`, in the order of their names.
    fn matching(&mut self, root: &Path, pattern: &str) -> Vec<PathBuf> {
        if pattern.contains(['[', '{', '\\', '~']) {
            self.troubles.push(format!("{pattern}: a pattern that is not followed here"));
            return Vec::new();
        }
        let mut found = vec![PathBuf::new()];
        for component in Path::new(pattern).components() {
            let part = component.as_os_str().to_string_lossy();
            found = match component {
                Component::Normal(_) if part.contains(['*', '?']) => {
                    let list = |at: PathBuf| -> Vec<PathBuf> {
                        let names = self.names(root, &at).into_iter();
                        let visible = |n: &String| !n.starts_with('.') || part.starts_with('.');
                        names
                            .filter(|n| visible(n) && fits(part.as_bytes(), n.as_bytes()))
                            .map(|n| at.join(n))
                            .collect()
                    };
                    found.into_iter().flat_map(list).collect()
                }
                _ => found.into_iter().map(|at| at.join(component)).collect(),
            };
        }
        found.retain(|path| below(root, path).exists());
        found
    }
}

/// A path of the daemon's as this process opens it.
pub(super) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Whether a name fits a pattern of `*` (any characters) and `?` (one).
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=name.len()).any(|n| fits(rest, &name[n..])),
        (Some((b'?', rest)), Some((_, left))) => fits(rest, left),
        (Some((p, rest)), Some((n, left))) => p == n && fits(rest, left),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    fn lines(settings: &Settings) -> Vec<String> {
        settings.directives.iter().map(|d| d.words.join(" ")).collect()
    }

    #[test]
    fn files_are_read_in_the_daemons_order() {
        let tree = Tree::new(&[
            (
                "etc/chrony.conf",
                "server a\n  ! server no\nConfDir /etc/b /etc/a\ninclude /etc/x/*.inc\nsourcedir /run/none /etc/s\nmaxclockerror 9",
            ),
            ("etc/a/1.conf", "one a"),
            ("etc/a/2.conf", "two a"),
            ("etc/b/2.conf", "two b\nmaxclockerror 7 # no comment to chronyd, and no number either"),
            ("etc/b/3.confx", "three"),
            ("etc/x/p.inc", "p"),
            ("etc/x/.q.inc", "hidden"),
            ("etc/x/o.inc", "\tpool  o  iburst"),
            ("etc/s/s.sources", "server s"),
            ("etc/s/s.conf", "no"),
        ]);
        let settings = Settings::read(tree.path(), Path::new("/etc/chrony.conf"));
        let expected = ["server a", "one a", "two b", "pool o iburst", "p", "server s", "maxclockerror 9"];
        let found: Vec<_> = lines(&settings).into_iter().filter(|l| !l.contains("no comment")).collect();
        assert_eq!(found, expected);
        assert_eq!(settings.number("MAXCLOCKERROR"), Some((9.0, Path::new("/etc/chrony.conf"))), "the last one counts");
        assert_eq!(settings.files.len(), 6);
        assert!(settings.troubles.is_empty(), "{settings:?}");
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let tree = Tree::new(&[("a", "include /a\nserver x"), ("d/x", ""), ("b", "include /d/[x]\nconfdir /a")]);
        let looped = Settings::read(tree.path(), Path::new("/a"));
        assert_eq!(looped.files.len(), DEPTH_MAX + 1);
        assert!(looped.troubles.len() == 1 && looped.troubles[0].contains("without an end"), "{looped:?}");
        let pattern = Settings::read(tree.path(), Path::new("/b"));
        assert!(pattern.troubles.len() == 1 && pattern.troubles[0].starts_with("/d/[x]: "), "{pattern:?}");
        let absent = Settings::read(tree.path(), Path::new("/c"));
        assert!(absent.files.is_empty() && absent.troubles[0].starts_with("/c: "), "{absent:?}");
        let given = Settings::of_lines(tree.path(), ["server y", "include /d/?"]);
        assert_eq!((lines(&given), given.files), (vec!["server y".to_owned()], vec![PathBuf::from("/d/x")]));
    }
    /// chronyd is the judge of what it reads (`-p` prints that, since 4.1; sources of directories it reads later and does not print).
    #[test]
    fn chronyd_itself_reads_the_same_lines() {
        let tree = Tree::new(&[
            ("a/1.conf", "rtcsync"),
            ("a/2.conf", "makestep 1 3"),
            ("b/2.conf", "MakeStep 2 3"),
            ("b/3.confx", "no"),
            ("x/p.inc", "  logchange   1"),
            ("x/.q.inc", "logchange 2"),
            ("x/o.inc", "\tpool  o.example  iburst"),
            ("s/s.sources", "server 10.0.0.9"),
        ]);
        let (at, file) = (tree.path().display(), tree.path().join("main"));
        let text = format!(
            "server 10.0.0.1\n ! server no\n; server no\n% no\n#no\nConfDir {at}/b {at}/a\ninclude {at}/x/?.i*\n\
             sourcedir {at}/none {at}/s\nmaxclockerror 9\ninclude {at}/none*.conf\ninclude {at}/none\n"
        );
        std::fs::write(&file, text).unwrap();
        let asked = ["chronyd", "/usr/sbin/chronyd"]
            .map(|program| std::process::Command::new(program).args(["-p", "-f"]).arg(&file).output());
        let Some(said) = asked.into_iter().flatten().find(|o| o.status.success()) else {
            return println!("NOT COVERED: this machine has no chronyd that prints its settings (chrony 4.1)");
        };
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let expected: Vec<&str> = said.lines().filter(|l| !l.starts_with("sourcedir ")).collect();
        let settings = Settings::read(Path::new("/"), &file);
        let found: Vec<_> = lines(&settings).into_iter().filter(|l| l != "server 10.0.0.9").collect();
        assert_eq!(found, expected);
        assert!(settings.troubles.is_empty() && settings.named("server").count() == 2, "{settings:?}");
    }
}
