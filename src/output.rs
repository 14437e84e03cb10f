//! Output of commands: results and rows on standard output, everything else on standard error.
//!
//! If the reader closes the pipe, the output ends, but a run continues. If a result cannot be written for another
//! reason, the command fails.

use std::io::{self, ErrorKind, IsTerminal as _, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::{Value, json};

use super::args::{ColorChoice, GlobalOptions, LedgerUrl, ProgressForm};
use super::exit::{CommandFailure, Explanation};
use super::hint::error_hint;
use super::progress::{LiveLine, print_json_line};
use super::prompt::CANCELLED;
use super::suggested::RepeatedOptions;
use super::text::{SpanMeaning, StyledLine, StyledText, plain, span};
use super::{exit, progress};
use campaign_core::finding::{
    Finding, Severity, escape_controls, escape_json_controls, escape_to_one_line, findings_json,
    render_findings_in_columns, rules,
};
use campaign_engine::report::{JSON_VERSION, format_local_second};
use campaign_runs::CheckedCampaign;

/// The output settings of a command.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) json: bool,
    pub(super) quiet: bool,
    /// The form in which progress is shown.
    pub(super) progress: ProgressForm,
    /// Whether standard output has colours.
    out_color: bool,
    /// Whether standard error has colours.
    error_color: bool,
    /// Whether the ledger is in a database.
    pub(super) shared_ledger: bool,
    /// The options that suggested commands repeat.
    pub(super) options: RepeatedOptions,
    /// The reason the ledger is not trusted.
    distrusted: Arc<OnceLock<String>>,
    /// Whether a result could not be written.
    unwritten: Arc<AtomicBool>,
}

/// Replaces the code of a success with the code of a storage failure, for a command whose result could not be written.
///
/// Any other code is kept, because it reports the outcome of the messages of a run.
fn code_if_unwritten(code: u8) -> u8 {
    if code == exit::SUCCESS { exit::STORAGE } else { code }
}

/// Reports an error that occurred while a result was written, and returns whether an error was reported. A closed pipe
/// is ignored.
pub(super) fn report_write_error(result: io::Result<()>) -> bool {
    match result {
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

    /// Prints the result of a command, wrapped and coloured for the terminal.
    pub(super) fn print_result(&self, text: impl Into<StyledText>) {
        self.print_text(&text.into().render(self.terminal_width(), self.out_color));
    }

    /// Prints lines for other programs, such as a configuration, without wrapping or colours.
    pub(super) fn print_unwrapped(&self, text: &str) {
        self.print_text(&escape_controls(text));
    }

    /// Prints the summary of a change. A quiet command prints nothing if it succeeded.
    pub(super) fn print_done(&self, text: impl Into<StyledText>, code: u8) {
        if !(self.quiet && code == exit::SUCCESS) {
            self.print_result(text);
        }
    }

    /// Prints the result of a command as one line of JSON. The version of the JSON format is added to an object.
    pub(super) fn print_object(&self, object: &impl Serialize) {
        // Objects contain only text keys and finite numbers, so serialization cannot fail.
        let json = match self.distrusted.get() {
            None => serde_json::to_string(object).unwrap_or_default(),
            Some(reason) => mark_untrusted(serde_json::to_value(object).unwrap_or_default(), reason).to_string(),
        };
        self.print_text(&format!("{}\n", escape_json_controls(&with_json_version(&json))));
    }

    /// Prints a document in another program's format as one line of JSON.
    pub(super) fn print_foreign_json(&self, document: &Value) {
        self.print_text(&format!("{}\n", escape_json_controls(&document.to_string())));
    }

    /// Warns that the ledger cannot be trusted. The command continues and exits with code 74.
    pub(super) fn warn_untrusted_ledger(&self, reason: &str) {
        if self.distrusted.set(reason.to_owned()).is_ok() && !self.json {
            self.print_labelled("warning", SpanMeaning::Caution, &format!("this output might be wrong: {reason}"));
        }
    }

    /// The reason why the ledger cannot be trusted, if any.
    pub(super) fn distrust_reason(&self) -> Option<&str> {
        self.distrusted.get().map(String::as_str)
    }

    fn print_text(&self, text: &str) {
        if self.unwritten.load(Ordering::Relaxed) {
            return;
        }
        let written = progress::with_suspended_line(|| {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        });
        self.unwritten.fetch_or(report_write_error(written), Ordering::Relaxed);
    }

    /// The exit code of the process: a storage failure if the result cannot be trusted or was not written.
    pub(super) fn final_code(&self, code: u8) -> u8 {
        match (self.distrusted.get(), self.unwritten.load(Ordering::Relaxed)) {
            (Some(_), _) => exit::STORAGE,
            (None, true) => code_if_unwritten(code),
            (None, false) => code,
        }
    }

    /// Prints this program's own text unchanged.
    pub(super) fn print_verbatim(&self, text: &str) {
        self.print_text(text);
    }

    /// Prints a note, unless the command is quiet.
    pub(super) fn print_note(&self, line: &str) {
        match self.progress {
            _ if self.quiet || self.json => {}
            ProgressForm::Json => print_json_line(json!({ "event": "note", "text": line })),
            _ => self.print_lines(StyledLine::from_prose(line)),
        }
    }

    /// Prints a warning, even if the command is quiet.
    pub(super) fn print_warning(&self, line: &str) {
        match self.progress {
            _ if self.json => {}
            ProgressForm::Json => print_json_line(json!({ "event": "warning", "text": line })),
            _ => self.print_labelled("warning", SpanMeaning::Caution, line),
        }
    }

    /// Prints findings. A quiet command omits notes.
    pub(super) fn print_findings(&self, findings: &[Finding]) {
        let is_shown = |finding: &&Finding| !self.quiet || finding.severity > Severity::Note;
        let visible: Vec<Finding> = findings.iter().filter(is_shown).cloned().collect();
        if !visible.is_empty() {
            let text = render_findings_in_columns(&visible, self.error_color, error_terminal_width());
            progress::with_suspended_line(|| {
                let _ = writeln!(io::stderr().lock(), "{}", text.trim_end());
            });
        }
    }

    /// Prints why a command failed, and returns its exit code.
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

    /// Prints a line on standard error with a label such as `error`.
    fn print_labelled(&self, label: &str, meaning: SpanMeaning, text: &str) {
        self.print_lines(StyledLine::with_label(span(meaning, format!("{label}:")), text));
    }

    /// Prints lines on standard error, wrapped and coloured for the terminal. Write errors are ignored.
    pub(super) fn print_lines(&self, text: impl Into<StyledText>) {
        let text = text.into().render(error_terminal_width(), self.error_color);
        progress::with_suspended_line(|| {
            let _ = io::stderr().lock().write_all(text.as_bytes());
        });
    }

    /// Formats a prompt for standard error. The operator types after the last line of the prompt.
    pub(super) fn format_prompt(&self, text: impl Into<StyledText>) -> String {
        text.into().render(error_terminal_width(), self.error_color).trim_end().to_owned() + " "
    }

    /// Shows a spinner with a text such as "Reading the list…" until the returned value is dropped.
    pub(super) fn show_spinner(&self, text: &'static str) -> Option<LiveLine> {
        (self.progress_form() == ProgressForm::Bar).then(|| progress::show_spinner(text))
    }

    /// Whether standard error has colours.
    pub(super) fn error_color(&self) -> bool {
        self.error_color
    }

    /// Whether standard output has colours.
    pub(super) fn out_color(&self) -> bool {
        self.out_color
    }

    /// Explains an error of the `campaign_runs` crate.
    pub(super) fn explain_error(&self, error: &campaign_runs::Error) -> Explanation {
        Explanation::from_run_error(error, &self.options)
    }

    /// Adds the remedy to the finding that says why `run` would refuse the campaign.
    pub(super) fn add_hint(&self, checked: &mut CheckedCampaign) {
        let Some(help) = checked.refused.as_ref().and_then(|error| error_hint(error, &self.options)) else {
            return;
        };
        let refusals = checked.findings.iter_mut().filter(|finding| *finding.rule == rules::RUN_REFUSED);
        refusals.for_each(|finding| finding.help = Some(help.clone()));
    }

    /// Returns the form in which progress is shown in this environment.
    pub(super) fn progress_form(&self) -> ProgressForm {
        let is_terminal = io::stderr().is_terminal();
        match self.progress {
            ProgressForm::Auto if self.quiet || self.json => ProgressForm::None,
            ProgressForm::Auto | ProgressForm::Bar if is_terminal => ProgressForm::Bar,
            ProgressForm::Auto | ProgressForm::Bar => ProgressForm::Lines,
            form => form,
        }
    }

    /// The width of standard output. `None` if standard output is not a terminal.
    pub(super) fn terminal_width(&self) -> Option<usize> {
        console::Term::stdout().size_checked().map(|(_, columns)| columns.into())
    }

    /// Whether the operator can answer a prompt.
    pub(super) fn can_ask(&self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }
}

/// The width of standard error. `None` if standard error is not a terminal.
pub(super) fn error_terminal_width() -> Option<usize> {
    console::Term::stderr().size_checked().map(|(_, columns)| columns.into())
}

/// Whether standard error shows colours.
pub(super) fn error_has_colours(choice: ColorChoice) -> bool {
    is_coloured(choice, &io::stderr())
}

/// Whether a stream shows colours. `Auto` follows `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and `TERM`.
fn is_coloured(choice: ColorChoice, stream: &impl anstream::stream::RawStream) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never,
    }
}

/// Adds the version of the JSON format to an object. Arrays are returned unchanged.
pub(super) fn with_json_version(json: &str) -> String {
    match json.strip_prefix('{') {
        None => json.to_owned(),
        Some("}") => format!("{{\"version\":{JSON_VERSION}}}"),
        Some(members) => format!("{{\"version\":{JSON_VERSION},{members}"),
    }
}

/// Sets the storage exit code and appends `reason` to the error.
///
/// Objects without an exit code are nested in another object and stay unchanged.
fn mark_untrusted(mut object: Value, reason: &str) -> Value {
    if object.get("exit").is_some() {
        object["exit"] = exit::STORAGE.into();
        let earlier = object["error"].as_str().map(|earlier| format!("{earlier}; ")).unwrap_or_default();
        object["error"] = format!("{earlier}{reason}").into();
    }
    object
}

/// The format of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowSyntax {
    Csv,
    Json,
}

/// A writer for rows. A pipe or file gets every byte; a terminal gets escaped text, so that no cell can control it.
pub(super) struct RowOutput<W> {
    out: W,
    is_terminal: bool,
    syntax: RowSyntax,
    /// Whether a quoted cell of the CSV is open.
    is_quoted: bool,
    /// The first bytes of an incomplete character.
    pending: Vec<u8>,
}

impl RowOutput<Stdout> {
    /// Creates an output that writes rows to standard output.
    pub(super) fn stdout(syntax: RowSyntax) -> Self {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        Self::new(out, is_terminal, syntax)
    }
}

impl<W: Write> RowOutput<W> {
    fn new(out: W, is_terminal: bool, syntax: RowSyntax) -> Self {
        Self { out, is_terminal, syntax, is_quoted: false, pending: Vec::new() }
    }

    fn escape(&mut self, text: &str) -> String {
        if self.syntax == RowSyntax::Json {
            return escape_json_controls(text).into_owned();
        }
        let mut escaped = String::with_capacity(text.len());
        for c in text.chars() {
            // Each quotation mark opens or closes a quoted cell.
            self.is_quoted ^= c == '"';
            match c {
                // The end of a row, not a line break within a cell.
                '\n' if !self.is_quoted => escaped.push(c),
                ' '..='~' => escaped.push(c),
                c => escaped.push_str(&escape_to_one_line(c.encode_utf8(&mut [0; 4]))),
            }
        }
        escaped
    }
}

impl<W: Write> Write for RowOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.out.write(bytes);
        }
        self.pending.extend_from_slice(bytes);
        let valid_length = match std::str::from_utf8(&self.pending) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.pending.len(),
        };
        let rest = self.pending.split_off(valid_length);
        let text = String::from_utf8_lossy(&std::mem::replace(&mut self.pending, rest)).into_owned();
        let escaped = self.escape(&text);
        self.out.write_all(escaped.as_bytes()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Formats a timestamp as local time to the second. A text in another format is returned unchanged.
pub(super) fn format_timestamp(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), format_local_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "row,error\n2,\"x\nINFO \"\"fake\"\", Київ\"\n3,\u{1b}[2J\u{202e}\n";

    fn write_in_chunks(is_terminal: bool, syntax: RowSyntax, text: &str, chunk: usize) -> String {
        let mut screen = RowOutput::new(Vec::new(), is_terminal, syntax);
        text.as_bytes().chunks(chunk).for_each(|bytes| screen.write_all(bytes).unwrap());
        String::from_utf8(screen.out).unwrap()
    }

    #[test]
    fn terminal_gets_escaped_rows_and_pipe_gets_every_byte() {
        for chunk in [1, 3, 1_000] {
            let written = write_in_chunks(true, RowSyntax::Csv, CSV, chunk);
            assert_eq!(written, "row,error\n2,\"x⏎INFO \"\"fake\"\", Київ\"\n3,\\u{1b}[2J\\u{202e}\n");
            assert_eq!(write_in_chunks(false, RowSyntax::Csv, CSV, chunk), CSV);
            assert_eq!(
                write_in_chunks(true, RowSyntax::Json, "{\"e\":\"\u{202e}Ї\"}\n", chunk),
                "{\"e\":\"\\u202eЇ\"}\n"
            );
        }
    }

    #[test]
    fn rfc3339_timestamp_becomes_readable_and_other_text_is_kept() {
        let time = format_timestamp("2026-11-26T17:02:31.123Z");
        assert!(time.len() == "2026-11-26 17:02:31".len() && !time.contains(['T', 'Z', '.']), "{time}");
        assert_eq!(format_timestamp("soon"), "soon");
    }
}
