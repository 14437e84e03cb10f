//! What is printed: results on standard output, everything else on standard error.
//!
//! A reader that closed its end is the end of the output, never of a run. Any other reason why a result cannot be
//! written is a failure of the command that printed it.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::{Value, json};

use super::args::{ColorChoice, Global, LedgerUrl, ProgressForm};
use super::exit;
use super::failure::{Explanation, Failure};
use super::listing::fitted;
use super::suggested::Options;
use crate::finding::{Finding, Severity, findings_json, harmless, harmless_json, one_line, show};
use crate::runs;

/// How a command prints.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) json: bool,
    pub(super) quiet: bool,
    /// How progress is shown.
    pub(super) progress: ProgressForm,
    color: bool,
    /// Whether the ledger is in a database.
    pub(super) shared_ledger: bool,
    /// What every command that is suggested needs behind it.
    pub(super) options: Options,
    /// Why what the ledger says is not to be believed.
    distrusted: Arc<OnceLock<String>>,
    /// Whether a result could not be written.
    unwritten: Arc<AtomicBool>,
}

/// The code of a command that would end with this one, and whose result could not be written.
///
/// A code that tells of something else stays: of a run it says what became of the messages.
pub(super) fn code_unwritten(code: u8) -> u8 {
    if code == exit::FINE { exit::STORAGE } else { code }
}

/// Whether the result was not written and somebody would have read it, which is told.
pub(super) fn is_unwritten(written: io::Result<()>) -> bool {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = writeln!(io::stderr().lock(), "campaign: the result cannot be written to standard output: {error}");
            true
        }
        _ => false,
    }
}

impl Output {
    pub(super) fn new(global: &Global, progress: ProgressForm, options: Options) -> Self {
        let color = match global.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        };
        let (distrusted, unwritten) = (Arc::default(), Arc::default());
        let shared_ledger = global.ledger.as_ref().and_then(LedgerUrl::given).is_some();
        let (json, quiet) = (global.json, global.quiet);
        Self { json, quiet, progress, color, shared_ledger, options, distrusted, unwritten }
    }

    /// The result of a command.
    pub(super) fn result(&self, text: &str) {
        self.print(&harmless(text));
    }

    /// A summary for a person; no word of it is cut at the end of a terminal's line.
    pub(super) fn summary(&self, text: &str) {
        match self.columns() {
            Some(columns) => self.result(&fitted(text, columns)),
            None => self.result(text),
        }
    }

    /// What a command did, with its code; a quiet command that did it says nothing.
    pub(super) fn done(&self, text: &str, code: u8) {
        if !(self.quiet && code == exit::FINE) {
            self.summary(text);
        }
    }

    /// The result of a command for a program: one JSON object on a line.
    pub(super) fn object(&self, object: &impl Serialize) {
        // What is printed has text keys and finite numbers alone, so that it always has a JSON form.
        let json = match self.distrusted.get() {
            None => serde_json::to_string(object).unwrap_or_default(),
            Some(reason) => distrusted(serde_json::to_value(object).unwrap_or_default(), reason).to_string(),
        };
        self.print(&format!("{}\n", harmless_json(&json)));
    }

    /// Says why what the ledger says is not to be believed; whatever the command shows all the same ends with 74.
    pub(super) fn distrust(&self, reason: &str) {
        if self.distrusted.set(reason.to_owned()).is_ok() && !self.json {
            let _ = writeln!(io::stderr().lock(), "campaign: what follows may be wrong: {}", one_line(reason));
        }
    }

    /// Why what the ledger says is not to be believed; nothing if it is.
    pub(super) fn distrusted(&self) -> Option<&str> {
        self.distrusted.get().map(String::as_str)
    }

    fn print(&self, text: &str) {
        if self.unwritten.load(Ordering::Relaxed) {
            return;
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        self.unwritten.fetch_or(is_unwritten(written), Ordering::Relaxed);
    }

    /// The code of a command that would end with this one.
    pub(super) fn code(&self, code: u8) -> u8 {
        match (self.distrusted.get(), self.unwritten.load(Ordering::Relaxed)) {
            (Some(_), _) => exit::STORAGE,
            (None, true) => code_unwritten(code),
            (None, false) => code,
        }
    }

    /// A text of ours, printed as it is.
    pub(super) fn verbatim(&self, text: &str) {
        self.print(text);
    }

    /// A note for a person.
    pub(super) fn note(&self, line: &str) {
        if !self.quiet && !self.json {
            let _ = writeln!(io::stderr().lock(), "{}", one_line(line));
        }
    }

    /// A warning for a person, shown by quiet commands too.
    pub(super) fn warning(&self, line: &str) {
        if !self.json {
            let _ = writeln!(io::stderr().lock(), "warning: {}", one_line(line));
        }
    }

    /// Findings for a person; a quiet command omits notes.
    pub(super) fn findings(&self, findings: &[Finding]) {
        let is_shown = |finding: &&Finding| !self.quiet || finding.severity > Severity::Note;
        let told: Vec<Finding> = findings.iter().filter(is_shown).cloned().collect();
        if !told.is_empty() {
            let _ = writeln!(io::stderr().lock(), "{}", show(&told, self.color).trim_end());
        }
    }

    /// Tells why a command ended without its result, and gives its code.
    pub(super) fn failure(&self, failure: Failure) -> u8 {
        let Explanation { exit, message, findings, help } = failure.explain(&self.options);
        if self.json {
            let mut object = json!({ "exit": exit, "error": message });
            if !findings.is_empty() {
                object["findings"] = findings_json(&findings);
            }
            if let Some(help) = help {
                object["help"] = help.into();
            }
            self.object(&object);
        } else {
            self.findings(&findings);
            let _ = writeln!(io::stderr().lock(), "campaign: {}", one_line(&message));
            if let Some(help) = help {
                let _ = writeln!(io::stderr().lock(), "help: {}", one_line(&help));
            }
        }
        exit
    }

    /// The words and the code of what `runs` refused.
    pub(super) fn explain(&self, error: runs::Error) -> Explanation {
        Failure::from(error).explain(&self.options)
    }

    /// The form in which progress is shown here.
    pub(super) fn progress(&self) -> ProgressForm {
        let terminal = io::stderr().is_terminal();
        match self.progress {
            ProgressForm::Auto if self.quiet || self.json => ProgressForm::None,
            ProgressForm::Auto | ProgressForm::Bar if terminal => ProgressForm::Bar,
            ProgressForm::Auto | ProgressForm::Bar => ProgressForm::Lines,
            form => form,
        }
    }

    /// The columns of the terminal that results go to; nothing where they go elsewhere.
    pub(super) fn columns(&self) -> Option<usize> {
        console::Term::stdout().size_checked().map(|(_, columns)| columns.into())
    }

    /// Whether a person can be asked.
    pub(super) fn can_ask(&self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }
}

/// An object that says that it is not to be believed; one without an exit code is a part of something else.
fn distrusted(mut object: Value, reason: &str) -> Value {
    if object.get("exit").is_some() {
        object["exit"] = exit::STORAGE.into();
        let own = object["error"].as_str().map(|own| format!("{own}; ")).unwrap_or_default();
        object["error"] = format!("{own}{reason}").into();
    }
    object
}
