//! What is printed: results on standard output, everything else on standard error.
//!
//! A reader that closed its end is the end of the output, never of a run.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::{Value, json};

use super::args::{ColorChoice, Global};
use super::exit::{self, Failure};
use super::suggested::Options;
use crate::finding::{Finding, findings_json, harmless, show};

/// How a command prints.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) json: bool,
    pub(super) quiet: bool,
    color: bool,
    /// What every command that is suggested needs behind it.
    pub(super) options: Options,
    /// Why what the ledger says is not to be believed.
    distrusted: Arc<OnceLock<String>>,
}

impl Output {
    pub(super) fn new(global: &Global, options: Options) -> Self {
        let color = match global.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        };
        Self { json: global.json, quiet: global.quiet, color, options, distrusted: Arc::default() }
    }

    /// The result of a command.
    pub(super) fn result(&self, text: &str) {
        self.print(&harmless(text));
    }

    /// The result of a command for a program: one JSON object on a line.
    pub(super) fn object(&self, object: &impl Serialize) {
        // What is printed has text keys and finite numbers alone, so that it always has a JSON form.
        let text = match self.distrusted.get() {
            None => serde_json::to_string(object).unwrap_or_default(),
            Some(reason) => distrusted(serde_json::to_value(object).unwrap_or_default(), reason).to_string(),
        };
        self.print(&format!("{text}\n"));
    }

    /// Says why what the ledger says is not to be believed; whatever the command shows all the same ends with 74.
    pub(super) fn distrust(&self, reason: &str) {
        if self.distrusted.set(reason.to_owned()).is_ok() && !self.json {
            let _ = writeln!(io::stderr().lock(), "campaign: what follows may be wrong: {}", harmless(reason));
        }
    }

    /// Why what the ledger says is not to be believed; nothing if it is.
    pub(super) fn distrusted(&self) -> Option<&str> {
        self.distrusted.get().map(String::as_str)
    }

    /// The exit code of a command that came to `code`.
    pub(super) fn code(&self, code: u8) -> u8 {
        if self.distrusted.get().is_some() { exit::STORAGE } else { code }
    }

    fn print(&self, text: &str) {
        // Nobody may be reading any more; that ends nothing.
        let mut out = io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// A note for a person.
    pub(super) fn note(&self, line: &str) {
        if !self.quiet && !self.json {
            let _ = writeln!(io::stderr().lock(), "{}", harmless(line));
        }
    }

    /// Findings for a person.
    pub(super) fn findings(&self, findings: &[Finding]) {
        if !findings.is_empty() {
            let _ = writeln!(io::stderr().lock(), "{}", show(findings, self.color).trim_end());
        }
    }

    /// Why a command ended without its result.
    pub(super) fn failure(&self, failure: &Failure) {
        if self.json {
            let Failure { exit, message, findings } = failure;
            let mut object = json!({ "exit": exit, "error": message });
            if !findings.is_empty() {
                object["findings"] = findings_json(findings);
            }
            return self.object(&object);
        }
        self.findings(&failure.findings);
        let _ = writeln!(io::stderr().lock(), "campaign: {}", harmless(&failure.message));
    }

    /// Whether progress can be drawn.
    pub(super) fn terminal(&self) -> bool {
        io::stderr().is_terminal()
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
        object["error"] = reason.into();
    }
    object
}
