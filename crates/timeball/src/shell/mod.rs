//! `timeball sql`: a SQL shell, for this database and any that speaks its protocol.

mod copy;
mod describe;
mod export;
mod meta;
mod script;
mod statement;
mod table;
mod watch;

pub use script::Ended;

use crate::args::{Format, SqlOptions};
use crate::signals::{self, Signal};
use lab::client::{CancelKey, Client, ClientError, Column, Event, ServerMessage, TextRow, Url};
use rustyline::error::ReadlineError;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

/// The statement that runs now, for whoever takes SIGINT.
static RUNNING: Mutex<Option<CancelKey>> = Mutex::new(None);

/// Cancels the statement that runs now; `false` if there is none.
pub fn cancel_running() -> bool {
    let key = RUNNING.lock().ok().and_then(|running| running.clone());
    let watched = watch::stop();
    // Where the request does not arrive, the user presses the key again.
    key.is_some_and(|key| key.cancel().is_ok()) || watched
}

/// What a shell holds between statements.
pub struct Shell {
    url: Url,
    client: Client,
    /// Somebody is at the keys.
    interactive: bool,
    format: Format,
    timing: bool,
    /// A column per line.
    expanded: bool,
    /// Set by `\set`.
    variables: BTreeMap<String, String>,
    /// The last statements, for `\watch`.
    last: String,
    /// What the session was told to be like, and another one would not be: texts with a SET, the newest last, at most [`SET_TEXTS_MAX`].
    set: Vec<String>,
}

/// So many texts are remembered that have set something.
const SET_TEXTS_MAX: usize = 20;

/// Whether the shell goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next line.
    On,
    /// The last statement failed.
    Failed,
    /// The connection was lost, and what was not committed with it.
    Lost,
    /// `\q`
    Leave,
}

/// `timeball sql`.
pub fn run(options: &SqlOptions) -> Result<(), Ended> {
    let failed = |why: String| Ended::Failed(why);
    signals::block().map_err(|e| failed(format!("cannot block signals: {e}")))?;
    let waiting = std::thread::Builder::new().name("signals".into()).spawn(|| {
        while signals::wait() == Signal::Interrupt && cancel_running() {}
        std::process::exit(130);
    });
    waiting.map_err(|e| failed(format!("cannot start a thread: {e}")))?;
    let url = Url::parse(&options.url).map_err(|e| failed(e.to_string()))?;
    if options.execute.is_empty() && std::io::stdin().is_terminal() {
        return interactive(&url, options.format, &options.variables, &mut |_, _| None);
    }
    let mut shell = Shell::connect(&url, options.format, &options.variables, false)?;
    if options.execute.is_empty() { shell.script(&mut std::io::stdin().lock()) } else { shell.texts(&options.execute) }
}

/// Commands that only some shells have: a name and its arguments to what is to be shown; `None`: there is none of that name. What `\?` gives is shown
/// below what that shows anyway.
pub type MoreCommands<'a> = &'a mut dyn FnMut(&str, &[&str]) -> Option<String>;

/// A shell on the terminal, with editing and history.
pub fn interactive(
    url: &Url,
    format: Format,
    variables: &[(String, String)],
    more: MoreCommands<'_>,
) -> Result<(), Ended> {
    let mut shell = Shell::connect(url, format, variables, true)?;
    let terminal = |e: ReadlineError| Ended::Failed(format!("cannot use the terminal: {e}"));
    let mut editor = rustyline::DefaultEditor::new().map_err(terminal)?;
    let history = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".timeball_history"));
    if let Some(path) = &history {
        // There is none at the first start.
        let _ = editor.load_history(path);
    }
    println!("{} at {}. \\? shows the commands.", shell.server(), shell.place());
    let mut pending = String::new();
    loop {
        let prompt = shell.prompt(&pending);
        match editor.readline(&prompt) {
            Ok(line) => {
                if !pending.is_empty() {
                    pending.push('\n');
                }
                pending.push_str(&line);
                if shell.complete(&pending) {
                    let text = std::mem::take(&mut pending);
                    // A history that is full or unwritable is no reason to stop.
                    let _ = editor.add_history_entry(text.as_str());
                    let words: Vec<&str> = text.split_whitespace().collect();
                    let helps = words.first() == Some(&"\\?");
                    if helps {
                        shell.typed(&text);
                    }
                    if let Some(shown) = words.split_first().and_then(|(name, arguments)| more(name, arguments)) {
                        crate::say(&shown);
                    } else if !helps && shell.typed(&text) == Step::Leave {
                        break;
                    }
                }
            }
            Err(ReadlineError::Interrupted) => pending.clear(),
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(terminal(e)),
        }
    }
    if let Some(path) = &history {
        let _ = editor.save_history(path);
    }
    Ok(())
}

impl Shell {
    fn connect(url: &Url, format: Format, variables: &[(String, String)], interactive: bool) -> Result<Shell, Ended> {
        let client = Client::connect(url).map_err(|e| Ended::Disconnected(e.to_string()))?;
        let (timing, expanded) = (false, false);
        let (variables, last) = (variables.iter().cloned().collect(), String::new());
        let set = Vec::new();
        Ok(Shell { url: url.clone(), client, interactive, format, timing, expanded, variables, last, set })
    }

    fn server(&self) -> String {
        format!("server {}", self.client.parameter("server_version").unwrap_or("of unknown version"))
    }

    /// Where it is connected to.
    fn place(&self) -> String {
        self.url.hosts.get(self.client.host()).map(|(host, port)| format!("{host}:{port}")).unwrap_or_default()
    }

    fn prompt(&self, pending: &str) -> String {
        let state = match self.client.transaction_status() {
            'T' => "*",
            'E' => "!",
            _ => "",
        };
        format!("{}{}{state}> ", self.url.database, if pending.is_empty() { "=" } else { "-" })
    }

    /// Whether the text can be run: a command, or statements that end with a semicolon.
    fn complete(&self, text: &str) -> bool {
        let text = text.trim();
        text.is_empty() || text.starts_with('\\') || statement::is_complete(text)
    }

    /// Runs a command or statements, and shows what comes.
    pub fn line(&mut self, text: &str) -> Step {
        let text = text.trim();
        if text.is_empty() {
            return Step::On;
        }
        if text.starts_with('\\') {
            return meta::run(self, text);
        }
        let (statements, command) = statement::split_command(text).unwrap_or((text, ""));
        let statements = self.with_variables(statements.trim());
        let began = Instant::now();
        if !command.is_empty() {
            self.last = statements;
            return meta::run(self, command);
        }
        let done = self.statement(&statements, None);
        self.last = statements;
        if self.timing {
            println!("Time: {:.3} ms", began.elapsed().as_secs_f64() * 1e3);
        }
        done
    }

    /// A text with the values of its variables.
    fn with_variables(&self, text: &str) -> String {
        statement::interpolate(text, &self.variables)
    }

    /// The rows of a query of the shell's own; `None` if it failed, which was shown.
    fn ask(&mut self, query: &str) -> Option<Vec<TextRow>> {
        match self.client.query(query) {
            Ok(rows) => Some(rows),
            Err(ClientError::Server(message)) => {
                show_message(&message, query);
                None
            }
            Err(e) => {
                self.lost(&e);
                None
            }
        }
    }

    /// Runs statements under a title.
    fn statement(&mut self, text: &str, title: Option<&str>) -> Step {
        let mut view = View::new(self, text, title);
        self.mark_running(true);
        let ran = self.client.query_events(text, |event| view.see(event));
        self.mark_running(false);
        let (failed, has_set) = (view.failed, view.has_set);
        if let Err(e) = ran {
            return self.lost(&e);
        }
        if has_set {
            self.set.retain(|known| known != text);
            self.set.push(text.to_owned());
            self.set.drain(..self.set.len().saturating_sub(SET_TEXTS_MAX));
        }
        if failed { Step::Failed } else { Step::On }
    }

    fn mark_running(&self, runs: bool) {
        if let Ok(mut running) = RUNNING.lock() {
            *running = runs.then(|| self.client.cancel_key());
        }
    }

    /// The connection is gone: tries once to get another, at the next host if there are several. A script ends instead: what comes next in it
    /// may be the rest of a transaction.
    fn lost(&mut self, error: &ClientError) -> Step {
        eprintln!("{error}");
        if !self.interactive {
            return Step::Lost;
        }
        match self.client.connect_again(&self.url) {
            Ok(client) => {
                self.client = client;
                eprint!("{}", connected_again(&self.place(), &std::mem::take(&mut self.set)));
            }
            Err(e) => eprintln!("{e}"),
        }
        Step::Lost
    }
}

/// What a new session does not have of the one that was lost.
fn connected_again(place: &str, set: &[String]) -> String {
    let mut told = format!("Connected again, to {place}, in a new session: what was not committed is lost");
    if set.is_empty() {
        return told + ", and so are prepared statements and locks.\n";
    }
    told.push_str(", and so are prepared statements, locks and settings. Set again what you need:\n");
    set.iter().for_each(|text| told.push_str(&format!("  {text}\n")));
    told
}

/// Shows the events of one text.
struct View<'a> {
    format: Format,
    expanded: bool,
    title: Option<&'a str>,
    text: &'a str,
    columns: Option<Vec<Column>>,
    rows: Vec<TextRow>,
    failed: bool,
    /// A setting was set.
    has_set: bool,
}

impl<'a> View<'a> {
    fn new(shell: &Shell, text: &'a str, title: Option<&'a str>) -> View<'a> {
        let (format, expanded) = (shell.format, shell.expanded);
        View { format, expanded, title, text, columns: None, rows: Vec::new(), failed: false, has_set: false }
    }

    fn see(&mut self, event: Event) {
        match event {
            Event::Columns(columns) => self.columns = Some(columns),
            Event::Row(row) => self.rows.push(row),
            Event::Tag(tag) => {
                self.has_set |= tag == "SET";
                self.result(&tag);
            }
            Event::Notice(notice) => show_message(&notice, self.text),
            Event::Error(error) => {
                // Rows that came before the error are part of what happened.
                self.columns = None;
                self.rows.clear();
                self.failed = true;
                show_message(&error, self.text);
            }
        }
    }

    fn result(&mut self, tag: &str) {
        let rows = std::mem::take(&mut self.rows);
        let text = match (self.columns.take(), self.format) {
            (Some(columns), Format::Table) if self.expanded => table::expanded(&columns, &rows, self.title) + "\n",
            (Some(columns), Format::Table) => table::aligned(&columns, &rows, self.title) + "\n",
            (Some(columns), Format::Csv) => export::csv(&columns, &rows),
            (Some(columns), Format::Json) => export::json(&columns, &rows),
            (None, Format::Table) if rows.is_empty() => format!("{tag}\n"),
            // COPY TO STDOUT: lines as they came.
            (None, _) => rows.into_iter().flatten().flatten().map(|line| line + "\n").collect(),
        };
        crate::say(&text);
    }
}

/// An error or notice, with the line of the statement that it points at.
fn show_message(message: &ServerMessage, text: &str) {
    let mut out = format!("{}:  {}", message.severity, message.message);
    if message.code != "00000" {
        out.push_str(&format!(" ({})", message.code));
    }
    if let Some((line, pointer)) = message.position.and_then(|p| statement::point_at(text, p)) {
        out.push_str(&format!("\n{line}\n{pointer}"));
    }
    for (word, extra) in [("DETAIL", &message.detail), ("HINT", &message.hint)] {
        if let Some(extra) = extra {
            out.push_str(&format!("\n{word}:  {extra}"));
        }
    }
    eprintln!("{out}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_session_says_what_it_lacks() {
        let told = connected_again("127.0.0.1:2", &[]);
        assert!(told.starts_with("Connected again, to 127.0.0.1:2, in a new session: what was not committed is lost"));
        let set = ["SET timeball.consistency = 'stale';", "SET a.b = 1; SELECT 1;"].map(str::to_owned);
        let told = connected_again("127.0.0.1:2", &set);
        assert!(set.iter().all(|text| told.contains(&format!("\n  {text}\n"))) && told.contains("settings"), "{told}");
    }
}
