//! A PostgreSQL server of the test's own.

use postgres::{Client, NoTls};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian keeps the server's programs.
const BIN: &str = "/usr/lib/postgresql/15/bin";

/// A running server; stopped when it is dropped.
pub struct Postgres {
    url: String,
    dir: Option<PathBuf>,
}

impl Postgres {
    /// The server that `TIMEBALL_TEST_POSTGRES` names, or a new one in `dir`. The error says what is missing.
    pub fn start(dir: &Path) -> Result<Postgres, String> {
        if let Ok(url) = std::env::var("TIMEBALL_TEST_POSTGRES") {
            let mut client = Client::connect(&url, NoTls).map_err(|e| format!("TIMEBALL_TEST_POSTGRES: {e}"))?;
            client.batch_execute("DROP DATABASE IF EXISTS timeball_differential").map_err(|e| e.to_string())?;
            client
                .batch_execute("CREATE DATABASE timeball_differential TEMPLATE template0 LOCALE 'C'")
                .map_err(|e| e.to_string())?;
            return Ok(Postgres { url: format!("{url} dbname=timeball_differential"), dir: None });
        }
        if !Path::new(BIN).join("initdb").exists() {
            return Err(format!("no PostgreSQL server in {BIN}"));
        }
        std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
        let port = crate::node::free_port();
        let (path, own) = (dir.display(), user()?);
        if let Some(owner) = own {
            shell(&format!("chown {owner} '{path}' && chmod 755 '{path}/..'"))?;
        }
        as_user(own, &format!("{BIN}/initdb -D {path}/data -U root --auth trust -E UTF8 --locale C"))?;
        let options = format!("-p {port} -h 127.0.0.1 -k {path} -F");
        let server = Postgres {
            url: format!("host=127.0.0.1 port={port} user=root dbname=postgres"),
            dir: Some(dir.to_path_buf()),
        };
        as_user(own, &format!("{BIN}/pg_ctl -D {path}/data -w -l {path}/log -o '{options}' start"))?;
        Ok(server)
    }

    pub fn connect(&self) -> Client {
        Client::connect(&self.url, NoTls).unwrap()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let (Some(dir), Ok(own)) = (&self.dir, user()) {
            let _ = as_user(own, &format!("{BIN}/pg_ctl -D {}/data -m immediate stop", dir.display()));
        }
    }
}

/// Whom to be: PostgreSQL refuses to run as root.
fn user() -> Result<Option<&'static str>, String> {
    let root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout.trim_ascii() == b"0");
    if !root {
        return Ok(None);
    }
    let known = Command::new("id").arg("postgres").output().is_ok_and(|o| o.status.success());
    if known {
        Ok(Some("postgres"))
    } else {
        Err("PostgreSQL does not run as root, and there is no user postgres".into())
    }
}

fn as_user(user: Option<&str>, command: &str) -> Result<(), String> {
    match user {
        Some(user) => shell(&format!("cd / && su {user} -s /bin/sh -c \"{command}\"")),
        None => shell(command),
    }
}

fn shell(command: &str) -> Result<(), String> {
    // To a file of nobody: a server that inherits a pipe keeps it open.
    let out = Command::new("sh").arg("-c").arg(format!("{{ {command} ; }} >/dev/null 2>&1")).status();
    match out {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{command}` failed: {status}")),
        Err(e) => Err(format!("`{command}`: {e}")),
    }
}
