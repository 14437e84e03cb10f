//! Output of commands: results on standard output, everything else on standard error.
//!
//! A closed reader ends the output, never a run. If a result cannot be written for any other reason, the command fails.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::{Value, json};

use super::args::{ColorChoice, Global, LedgerUrl, ProgressForm};
use super::exit;
use super::failure::{Explanation, Failure};
use super::hint::hint;
use super::live_line::{self, LiveLine};
use super::progress::json_line;
use super::question::CANCELLED;
use super::suggested::Options;
use super::text::{Line, Meaning, Text, plain, span};
use crate::finding::{Finding, Severity, findings_json, harmless, harmless_json, rules, show_on};
use crate::runs::{self, CheckedCampaign};

/// How a command prints.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) json: bool,
    pub(super) quiet: bool,
    /// How progress is shown.
    pub(super) progress: ProgressForm,
    /// Whether standard output has colours.
    out_color: bool,
    /// Whether standard error has colours.
    error_color: bool,
    /// Whether the ledger is in a database.
    pub(super) shared_ledger: bool,
    /// The options of every suggested command.
    pub(super) options: Options,
    /// Why the ledger is not trusted.
    distrusted: Arc<OnceLock<String>>,
    /// Whether a result could not be written.
    unwritten: Arc<AtomicBool>,
}

/// The exit code of a command whose result could not be written, instead of this one.
///
/// Another code than success stays: that of a run says how its messages ended.
pub(super) fn code_unwritten(code: u8) -> u8 {
    if code == exit::FINE { exit::STORAGE } else { code }
}

/// Reports that a result cannot be written, and whether that is so. A closed reader is not reported.
pub(super) fn is_unwritten(written: io::Result<()>) -> bool {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = writeln!(io::stderr().lock(), "error: cannot write the result to standard output: {error}");
            true
        }
        _ => false,
    }
}

impl Output {
    pub(super) fn new(global: &Global, progress: ProgressForm, options: Options) -> Self {
        let (out_color, error_color) = (is_coloured(global.color, &io::stdout()), error_has_colours(global.color));
        console::set_colors_enabled_stderr(error_color);
        let (distrusted, unwritten) = (Arc::default(), Arc::default());
        let shared_ledger = global.ledger.as_ref().and_then(LedgerUrl::given).is_some();
        let (json, quiet) = (global.json, global.quiet);
        Self { json, quiet, progress, out_color, error_color, shared_ledger, options, distrusted, unwritten }
    }

    /// The result of a command for a person, wrapped and coloured as the terminal allows.
    pub(super) fn result(&self, text: impl Into<Text>) {
        self.print(&text.into().render(self.columns(), self.out_color));
    }

    /// The same; the usual word for what a command found out.
    pub(super) fn summary(&self, text: impl Into<Text>) {
        self.result(text);
    }

    /// Lines that another program may read, such as a configuration: neither wrapped nor coloured.
    pub(super) fn unwrapped(&self, text: &str) {
        self.print(&harmless(text));
    }

    /// The summary of what a command did, with its exit code. A quiet command that succeeded prints nothing.
    pub(super) fn done(&self, text: impl Into<Text>, code: u8) {
        if !(self.quiet && code == exit::FINE) {
            self.summary(text);
        }
    }

    /// The result of a command for a program: one JSON object on a line.
    pub(super) fn object(&self, object: &impl Serialize) {
        // Objects have text keys and finite numbers only, so that they always have a JSON form.
        let json = match self.distrusted.get() {
            None => serde_json::to_string(object).unwrap_or_default(),
            Some(reason) => distrusted(serde_json::to_value(object).unwrap_or_default(), reason).to_string(),
        };
        self.print(&format!("{}\n", harmless_json(&json)));
    }

    /// Warns that the ledger is not trusted. The command goes on and ends with 74.
    pub(super) fn distrust(&self, reason: &str) {
        if self.distrusted.set(reason.to_owned()).is_ok() && !self.json {
            self.labelled("warning", Meaning::Caution, &format!("this output might be wrong: {reason}"));
        }
    }

    /// Why the ledger is not trusted; nothing if it is.
    pub(super) fn distrusted(&self) -> Option<&str> {
        self.distrusted.get().map(String::as_str)
    }

    fn print(&self, text: &str) {
        if self.unwritten.load(Ordering::Relaxed) {
            return;
        }
        let written = live_line::suspended(|| {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        });
        self.unwritten.fetch_or(is_unwritten(written), Ordering::Relaxed);
    }

    /// The exit code of a command, instead of this one if its result is not trusted or not written.
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
        match self.progress {
            _ if self.quiet || self.json => {}
            ProgressForm::Json => json_line(json!({ "event": "note", "text": line })),
            _ => self.say(Line::prose(line)),
        }
    }

    /// A warning for a person, shown by quiet commands too.
    pub(super) fn warning(&self, line: &str) {
        match self.progress {
            _ if self.json => {}
            ProgressForm::Json => json_line(json!({ "event": "warning", "text": line })),
            _ => self.labelled("warning", Meaning::Caution, line),
        }
    }

    /// Findings for a person; a quiet command omits notes.
    pub(super) fn findings(&self, findings: &[Finding]) {
        let is_shown = |finding: &&Finding| !self.quiet || finding.severity > Severity::Note;
        let told: Vec<Finding> = findings.iter().filter(is_shown).cloned().collect();
        if !told.is_empty() {
            let shown = show_on(&told, self.error_color, error_columns());
            live_line::suspended(|| {
                let _ = writeln!(io::stderr().lock(), "{}", shown.trim_end());
            });
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
            match message.starts_with(CANCELLED) {
                true => self.say(Line::new([plain(message)])),
                false => self.labelled("error", Meaning::Bad, &message),
            }
            if let Some(help) = help {
                self.labelled("help", Meaning::Next, &help);
            }
        }
        exit
    }

    /// A line on standard error with a label such as `error`.
    fn labelled(&self, label: &str, meaning: Meaning, text: &str) {
        self.say(Line::labelled(span(meaning, format!("{label}:")), text));
    }

    /// Lines on standard error, wrapped and coloured as the terminal allows. A closed standard error ends no command.
    pub(super) fn say(&self, text: impl Into<Text>) {
        let text = text.into().render(error_columns(), self.error_color);
        live_line::suspended(|| {
            let _ = io::stderr().lock().write_all(text.as_bytes());
        });
    }

    /// A question as it is printed on standard error; the operator types behind its last line.
    pub(super) fn prompt(&self, text: impl Into<Text>) -> String {
        text.into().render(error_columns(), self.error_color).trim_end().to_owned() + " "
    }

    /// Shows these words with a spinner, such as "Reading the list…", until what is returned is dropped.
    pub(super) fn waiting(&self, words: &'static str) -> Option<LiveLine> {
        (self.progress() == ProgressForm::Bar).then(|| live_line::spin(words))
    }

    /// Whether standard error has colours.
    pub(super) fn error_color(&self) -> bool {
        self.error_color
    }

    /// Whether standard output has colours.
    pub(super) fn out_color(&self) -> bool {
        self.out_color
    }

    /// How an error of `runs` is shown.
    pub(super) fn explain(&self, error: &runs::Error) -> Explanation {
        Explanation::of(error, &self.options)
    }

    /// Adds to the finding that `run` would refuse a campaign what to do about it.
    pub(super) fn add_hint(&self, checked: &mut CheckedCampaign) {
        let Some(help) = checked.refused.as_ref().and_then(|refused| hint(refused, &self.options)) else { return };
        let refused = checked.findings.iter_mut().filter(|finding| *finding.rule == rules::RUN_REFUSED);
        refused.for_each(|finding| finding.help = Some(help.clone()));
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

/// The columns of the terminal that standard error is; nothing if it is none.
pub(super) fn error_columns() -> Option<usize> {
    console::Term::stderr().size_checked().map(|(_, columns)| columns.into())
}

/// Whether standard error shows colours.
pub(super) fn error_has_colours(choice: ColorChoice) -> bool {
    is_coloured(choice, &io::stderr())
}

fn is_coloured(choice: ColorChoice, stream: &impl anstream::stream::RawStream) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => has_colours(stream),
    }
}

/// Whether a stream shows colours: `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and `TERM` decide, as for other commands.
fn has_colours(stream: &impl anstream::stream::RawStream) -> bool {
    anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never
}

/// An object with the reason why the ledger is not trusted. An object without an exit code is a part of another one.
fn distrusted(mut object: Value, reason: &str) -> Value {
    if object.get("exit").is_some() {
        object["exit"] = exit::STORAGE.into();
        let own = object["error"].as_str().map(|own| format!("{own}; ")).unwrap_or_default();
        object["error"] = format!("{own}{reason}").into();
    }
    object
}
