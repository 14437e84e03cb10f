//! Output of commands: results on standard output, everything else on standard error.
//!
//! A closed reader ends the output, never a run. If a result cannot be written for any other reason, the command fails.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::{Value, json};

use super::args::{ColorChoice, GlobalOptions, LedgerUrl, ProgressForm};
use super::exit;
use super::failure::{CommandFailure, Explanation};
use super::hint::error_hint;
use super::live_line::{self, LiveLine};
use super::progress::print_json_line;
use super::question::CANCELLED;
use super::suggested::RepeatedOptions;
use super::text::{SpanMeaning, StyledLine, StyledText, plain, span};
use crate::finding::{
    Finding, Severity, escape_controls, escape_json_controls, findings_json, render_findings_in_columns, rules,
};
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
    pub(super) options: RepeatedOptions,
    /// Why the ledger is not trusted.
    distrusted: Arc<OnceLock<String>>,
    /// Whether a result could not be written.
    unwritten: Arc<AtomicBool>,
}

/// The exit code of a command whose result could not be written, instead of this one.
///
/// Another code than success stays: that of a run says how its messages ended.
pub(super) fn code_if_unwritten(code: u8) -> u8 {
    if code == exit::SUCCESS { exit::STORAGE } else { code }
}

/// Reports that a result cannot be written, and whether that is so. A closed reader is not reported.
pub(super) fn report_unwritten(written: io::Result<()>) -> bool {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = writeln!(io::stderr().lock(), "error: cannot write the result to standard output: {error}");
            true
        }
        _ => false,
    }
}

impl Output {
    pub(super) fn new(global: &GlobalOptions, progress: ProgressForm, options: RepeatedOptions) -> Self {
        let (out_color, error_color) = (is_coloured(global.color, &io::stdout()), error_has_colours(global.color));
        console::set_colors_enabled_stderr(error_color);
        let (distrusted, unwritten) = (Arc::default(), Arc::default());
        let shared_ledger = global.ledger.as_ref().and_then(LedgerUrl::url).is_some();
        let (json, quiet) = (global.json, global.quiet);
        Self { json, quiet, progress, out_color, error_color, shared_ledger, options, distrusted, unwritten }
    }

    /// The result of a command for a person, wrapped and coloured as the terminal allows.
    pub(super) fn print_result(&self, text: impl Into<StyledText>) {
        self.print_text(&text.into().render(self.terminal_width(), self.out_color));
    }

    /// The same; the usual word for what a command found out.
    pub(super) fn print_summary(&self, text: impl Into<StyledText>) {
        self.print_result(text);
    }

    /// Lines that another program may read, such as a configuration: neither wrapped nor coloured.
    pub(super) fn print_unwrapped(&self, text: &str) {
        self.print_text(&escape_controls(text));
    }

    /// The summary of what a command did, with its exit code. A quiet command that succeeded prints nothing.
    pub(super) fn print_done(&self, text: impl Into<StyledText>, code: u8) {
        if !(self.quiet && code == exit::SUCCESS) {
            self.print_summary(text);
        }
    }

    /// The result of a command for a program: one JSON object on a line.
    pub(super) fn print_object(&self, object: &impl Serialize) {
        // Objects have text keys and finite numbers only, so that they always have a JSON form.
        let json = match self.distrusted.get() {
            None => serde_json::to_string(object).unwrap_or_default(),
            Some(reason) => with_distrust(serde_json::to_value(object).unwrap_or_default(), reason).to_string(),
        };
        self.print_text(&format!("{}\n", escape_json_controls(&json)));
    }

    /// Warns that the ledger is not trusted. The command goes on and ends with 74.
    pub(super) fn warn_distrust(&self, reason: &str) {
        if self.distrusted.set(reason.to_owned()).is_ok() && !self.json {
            self.print_labelled("warning", SpanMeaning::Caution, &format!("this output might be wrong: {reason}"));
        }
    }

    /// Why the ledger is not trusted; nothing if it is.
    pub(super) fn distrust_reason(&self) -> Option<&str> {
        self.distrusted.get().map(String::as_str)
    }

    fn print_text(&self, text: &str) {
        if self.unwritten.load(Ordering::Relaxed) {
            return;
        }
        let written = live_line::with_suspended_line(|| {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        });
        self.unwritten.fetch_or(report_unwritten(written), Ordering::Relaxed);
    }

    /// The exit code of a command, instead of this one if its result is not trusted or not written.
    pub(super) fn final_code(&self, code: u8) -> u8 {
        match (self.distrusted.get(), self.unwritten.load(Ordering::Relaxed)) {
            (Some(_), _) => exit::STORAGE,
            (None, true) => code_if_unwritten(code),
            (None, false) => code,
        }
    }

    /// A text of ours, printed as it is.
    pub(super) fn print_verbatim(&self, text: &str) {
        self.print_text(text);
    }

    /// A note for a person.
    pub(super) fn print_note(&self, line: &str) {
        match self.progress {
            _ if self.quiet || self.json => {}
            ProgressForm::Json => print_json_line(json!({ "event": "note", "text": line })),
            _ => self.print_lines(StyledLine::from_prose(line)),
        }
    }

    /// A warning for a person, shown by quiet commands too.
    pub(super) fn print_warning(&self, line: &str) {
        match self.progress {
            _ if self.json => {}
            ProgressForm::Json => print_json_line(json!({ "event": "warning", "text": line })),
            _ => self.print_labelled("warning", SpanMeaning::Caution, line),
        }
    }

    /// Findings for a person; a quiet command omits notes.
    pub(super) fn print_findings(&self, findings: &[Finding]) {
        let is_shown = |finding: &&Finding| !self.quiet || finding.severity > Severity::Note;
        let told: Vec<Finding> = findings.iter().filter(is_shown).cloned().collect();
        if !told.is_empty() {
            let shown = render_findings_in_columns(&told, self.error_color, error_terminal_width());
            live_line::with_suspended_line(|| {
                let _ = writeln!(io::stderr().lock(), "{}", shown.trim_end());
            });
        }
    }

    /// Tells why a command ended without its result, and gives its code.
    pub(super) fn print_failure(&self, failure: CommandFailure) -> u8 {
        let Explanation { exit, message, findings, help } = failure.into_explanation(&self.options);
        if self.json {
            let mut object = json!({ "exit": exit, "error": message });
            if !findings.is_empty() {
                object["findings"] = findings_json(&findings);
            }
            if let Some(help) = help {
                object["help"] = help.into();
            }
            self.print_object(&object);
        } else {
            self.print_findings(&findings);
            match message.starts_with(CANCELLED) {
                true => self.print_lines(StyledLine::new([plain(message)])),
                false => self.print_labelled("error", SpanMeaning::Bad, &message),
            }
            if let Some(help) = help {
                self.print_labelled("help", SpanMeaning::Next, &help);
            }
        }
        exit
    }

    /// A line on standard error with a label such as `error`.
    fn print_labelled(&self, label: &str, meaning: SpanMeaning, text: &str) {
        self.print_lines(StyledLine::with_label(span(meaning, format!("{label}:")), text));
    }

    /// Lines on standard error, wrapped and coloured as the terminal allows. A closed standard error ends no command.
    pub(super) fn print_lines(&self, text: impl Into<StyledText>) {
        let text = text.into().render(error_terminal_width(), self.error_color);
        live_line::with_suspended_line(|| {
            let _ = io::stderr().lock().write_all(text.as_bytes());
        });
    }

    /// A question as it is printed on standard error; the operator types behind its last line.
    pub(super) fn format_prompt(&self, text: impl Into<StyledText>) -> String {
        text.into().render(error_terminal_width(), self.error_color).trim_end().to_owned() + " "
    }

    /// Shows these words with a spinner, such as "Reading the list…", until what is returned is dropped.
    pub(super) fn show_spinner(&self, words: &'static str) -> Option<LiveLine> {
        (self.progress_form() == ProgressForm::Bar).then(|| live_line::show_spinner(words))
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
    pub(super) fn explain_error(&self, error: &runs::Error) -> Explanation {
        Explanation::of_run_error(error, &self.options)
    }

    /// Adds to the finding that `run` would refuse a campaign what to do about it.
    pub(super) fn add_hint(&self, checked: &mut CheckedCampaign) {
        let Some(help) = checked.refused.as_ref().and_then(|refused| error_hint(refused, &self.options)) else {
            return;
        };
        let refused = checked.findings.iter_mut().filter(|finding| *finding.rule == rules::RUN_REFUSED);
        refused.for_each(|finding| finding.help = Some(help.clone()));
    }

    /// The form in which progress is shown here.
    pub(super) fn progress_form(&self) -> ProgressForm {
        let terminal = io::stderr().is_terminal();
        match self.progress {
            ProgressForm::Auto if self.quiet || self.json => ProgressForm::None,
            ProgressForm::Auto | ProgressForm::Bar if terminal => ProgressForm::Bar,
            ProgressForm::Auto | ProgressForm::Bar => ProgressForm::Lines,
            form => form,
        }
    }

    /// The columns of the terminal that results go to; nothing where they go elsewhere.
    pub(super) fn terminal_width(&self) -> Option<usize> {
        console::Term::stdout().size_checked().map(|(_, columns)| columns.into())
    }

    /// Whether a person can be asked.
    pub(super) fn can_ask(&self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }
}

/// The columns of the terminal that standard error is; nothing if it is none.
pub(super) fn error_terminal_width() -> Option<usize> {
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
fn with_distrust(mut object: Value, reason: &str) -> Value {
    if object.get("exit").is_some() {
        object["exit"] = exit::STORAGE.into();
        let own = object["error"].as_str().map(|own| format!("{own}; ")).unwrap_or_default();
        object["error"] = format!("{own}{reason}").into();
    }
    object
}
