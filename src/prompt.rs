//! Confirmation prompt before an irreversible change: the facts, and the answer that confirms.

use std::io::{self, BufRead as _, Write as _};

use console::Term;
#[cfg(unix)]
use rustix::process::{Signal, getpid, kill_process};
#[cfg(unix)]
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

use super::exit::CommandFailure;
use super::output::Output;
use super::progress;
use super::text::{Span, SpanMeaning, StyledLine, StyledText, dim, plain, span, strong};
use campaign_core::finding::escape_controls;
use campaign_runs::run_blocking;

/// The beginning of the message that says that the operator did not confirm.
pub(super) const CANCELLED: &str = "Cancelled. ";

/// The width of the label of a fact.
const LABEL_WIDTH: usize = 13;
/// The indent of each line.
const INDENT: usize = 2;

/// The answer that confirms an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedAnswer {
    /// The word `yes`.
    Yes,
    /// Another word, such as `weaken`.
    Word(&'static str),
    /// The number of affected recipients or entries.
    Number(u64),
}

/// A prompt for the confirmation of a change.
#[derive(Clone, Debug)]
pub(super) struct ConfirmationPrompt {
    title: String,
    facts: StyledText,
    notes: StyledText,
    answer: ExpectedAnswer,
    /// The effect of the answer, such as `send`.
    action: String,
    /// The effect of Enter.
    enter_action: &'static str,
}

impl ExpectedAnswer {
    /// Whether the operator typed the whole word or the exact number, in which spaces can group digits.
    fn is_matched_by(self, typed: &str) -> bool {
        match self {
            ExpectedAnswer::Yes => typed.trim() == "yes",
            ExpectedAnswer::Word(word) => typed.trim() == word,
            ExpectedAnswer::Number(number) => {
                let digits: String = typed.chars().filter(|character| !character.is_whitespace()).collect();
                digits.parse() == Ok(number)
            }
        }
    }

    /// The text that the operator must type.
    fn describe(self) -> String {
        match self {
            ExpectedAnswer::Yes => "yes".to_owned(),
            ExpectedAnswer::Word(word) => word.to_owned(),
            ExpectedAnswer::Number(number) => number.to_string(),
        }
    }
}

impl ConfirmationPrompt {
    /// Creates a prompt with a title. The operator types `answer` to confirm the action.
    pub(super) fn new(title: impl Into<String>, answer: ExpectedAnswer, action: impl Into<String>) -> Self {
        let (title, action) = (title.into(), action.into());
        Self { title, facts: StyledText::new(), notes: StyledText::new(), answer, action, enter_action: "cancel" }
    }

    /// Sets the text that says what Enter does, such as "cancel".
    pub(super) fn with_enter_action(self, enter_action: &'static str) -> Self {
        Self { enter_action, ..self }
    }

    /// Adds a fact with its label.
    pub(super) fn with_fact(mut self, label: &str, value: impl Into<Span>) -> Self {
        self.add_fact(label, [value.into()]);
        self
    }

    /// Adds a fact with its label. An empty label continues the previous fact.
    pub(super) fn add_fact(&mut self, label: &str, value: impl IntoIterator<Item = Span>) {
        self.facts.push(match label {
            "" => StyledLine::new(value).with_indent(INDENT + LABEL_WIDTH).with_hang(0),
            label => {
                let label = dim(format!("{label:<LABEL_WIDTH$}"));
                StyledLine::new([label].into_iter().chain(value)).with_indent(INDENT).with_hang(LABEL_WIDTH)
            }
        });
    }

    /// Adds a line below the value of the previous fact.
    pub(super) fn push_line(&mut self, line: StyledLine) {
        self.facts.push(line.with_indent(INDENT + LABEL_WIDTH));
    }

    /// Adds a sentence below the facts.
    pub(super) fn with_note(mut self, sentence: impl Into<String>) -> Self {
        self.add_note(sentence);
        self
    }

    /// Adds a sentence below the facts.
    pub(super) fn add_note(&mut self, sentence: impl Into<String>) {
        self.notes.push(StyledLine::new([plain(sentence)]).with_indent(INDENT).with_hang(0));
    }

    /// Adds a warning or a note of a finding below the facts.
    pub(super) fn add_labelled(&mut self, label: &str, meaning: SpanMeaning, message: &str) {
        self.notes.add_line(INDENT, [span(meaning, format!("{label}:")), plain(format!(" {message}"))]);
    }

    /// Adds an alternative command, after the purpose that it serves.
    pub(super) fn with_command(mut self, purpose: &str, command: String) -> Self {
        self.notes.push(StyledLine::new([plain(format!("{purpose}: {command}"))]).with_indent(INDENT).unbroken());
        self
    }

    /// Renders the prompt. The operator types after the last line of the prompt.
    pub(super) fn render_text(&self) -> StyledText {
        let mut text = StyledText::new();
        text.add_line(INDENT, [strong(self.title.as_str())]);
        for part in [&self.facts, &self.notes] {
            if !part.is_empty() {
                text.add_blank();
                text.extend(part.clone());
            }
        }
        text.add_blank();
        let (answer, action, enter_action) = (self.answer.describe(), &self.action, self.enter_action);
        let prompt =
            [plain("Type "), strong(answer), plain(format!(" to {action}, or press Enter to {enter_action}:"))];
        text.push(StyledLine::new(prompt).with_indent(INDENT));
        text
    }

    /// Asks the operator at the terminal, and returns whether the answer confirms the action.
    pub(super) async fn ask_operator(&self, output: &Output) -> Result<bool, campaign_runs::Error> {
        let typed = read_line(output.format_prompt(self.render_text())).await?;
        Ok(self.answer.is_matched_by(&typed))
    }
}

/// Asks the operator at the terminal. Without a terminal, only `--yes` confirms, which the caller checks first.
///
/// `change` is a clause without phone numbers, such as "cancelling 7 rows of sale@1". `unchanged` is the sentence that
/// reports that nothing changed.
///
/// # Errors
/// If the command cannot ask, without a terminal or with `--json`, or if the operator typed something else.
pub(super) async fn require_confirmation(
    output: &Output,
    prompt: ConfirmationPrompt,
    change: &str,
    unchanged: &str,
) -> Result<(), CommandFailure> {
    if !output.can_ask() {
        let message = format!(
            "{change} needs confirmation, but the command cannot ask without a terminal or with `--json`; nothing was changed"
        );
        return Err(CommandFailure::invalid(message)
            .with_help("run the command at a terminal to see what will change, or add `--yes` to confirm"));
    }
    match prompt.ask_operator(output).await? {
        true => Ok(()),
        false => Err(CommandFailure::invalid(format!("{CANCELLED}{unchanged}"))),
    }
}

/// Prints `prompt` with escaped control characters, and reads the line that the operator types after it.
pub(super) async fn read_typed_line(prompt: String) -> Result<String, campaign_runs::Error> {
    read_line(escape_controls(&prompt)).await
}

/// Reads the line that the operator types after a prompt, which is printed unchanged.
async fn read_line(prompt: String) -> Result<String, campaign_runs::Error> {
    progress::clear_line();
    run_blocking(move || {
        {
            // Release the lock before the wait, so that an interrupt can print its message.
            let mut out = std::io::stderr().lock();
            // Ignore the error: if the terminal is not writable, reading fails too.
            let _ = write!(out, "{prompt}");
            let _ = out.flush();
        }
        progress::set_typing(true);
        let mut typed = String::new();
        let _ = std::io::stdin().lock().read_line(&mut typed);
        progress::set_typing(false);
        typed
    })
    .await
}

/// Prints a prompt, and reads the line that the operator types after it without showing the line.
///
/// # Errors
/// If standard input is not a terminal, or the typed text is not UTF-8.
#[cfg(unix)]
pub(super) async fn read_hidden_line(prompt: &'static str) -> Result<io::Result<String>, campaign_runs::Error> {
    run_blocking(move || {
        let (mut input, terminal) = (io::stdin().lock(), Term::stderr());
        let settings = tcgetattr(&input)?;
        let mut hidden = settings.clone();
        // Ctrl-C only ends the line here. If it ended the process, the terminal would be left without echo.
        hidden.local_modes -= LocalModes::ECHO | LocalModes::ISIG;
        let interrupt = settings.special_codes[SpecialCodeIndex::VINTR];
        hidden.special_codes[SpecialCodeIndex::VEOL] = interrupt;
        // Hide first: a secret that is pasted as soon as the prompt appears must be neither shown nor lost.
        tcsetattr(&input, OptionalActions::Flush, &hidden)?;
        let typed = terminal.write_str(prompt).and_then(|()| input.fill_buf().map(<[u8]>::to_vec));
        tcsetattr(&input, OptionalActions::Flush, &settings)?;
        let typed = typed?;
        input.consume(typed.len());
        terminal.write_line("")?;
        if typed.last() == Some(&interrupt) {
            kill_process(getpid(), Signal::INT)?;
            return Ok(String::new());
        }
        String::from_utf8(typed).map_err(|_| io::Error::other("the input is not UTF-8"))
    })
    .await
}

/// Prints a prompt, and reads the line that the operator types after it without showing the line.
#[cfg(not(unix))]
pub(super) async fn read_hidden_line(prompt: &'static str) -> Result<io::Result<String>, campaign_runs::Error> {
    run_blocking(move || {
        let terminal = Term::stderr();
        terminal.write_str(prompt)?;
        terminal.read_secure_line()
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_must_be_the_whole_word_or_exact_number() {
        assert!(
            ExpectedAnswer::Yes.is_matched_by(" yes\n") && ExpectedAnswer::Word("weaken").is_matched_by("weaken\n")
        );
        assert!(ExpectedAnswer::Number(1_150).is_matched_by("1150\n"));
        assert!(ExpectedAnswer::Number(1_150).is_matched_by("1 150\n"));
        for typed in ["", "y", "YES", "no", "1150"] {
            assert!(
                !ExpectedAnswer::Yes.is_matched_by(typed) && !ExpectedAnswer::Word("weaken").is_matched_by(typed),
                "{typed:?}"
            );
        }
        for typed in ["", "yes", "115", "11500", "-1150", "1,150"] {
            assert!(!ExpectedAnswer::Number(1_150).is_matched_by(typed), "{typed:?}");
        }
    }

    #[test]
    fn prompt_aligns_its_facts_and_ends_with_the_expected_answer() {
        let prompt = ConfirmationPrompt::new(
            "Send 2 600 messages through production (gateway.example)?",
            ExpectedAnswer::Number(2_600),
            "send",
        )
        .with_fact("recipients", "2 600 of 3 000")
        .with_fact("channels", "viber, then sms")
        .with_note("Recipients who already got this message will get it again.");
        assert_eq!(
            prompt.render_text().render(Some(80), false),
            "  Send 2 600 messages through production (gateway.example)?\n\n  recipients   2 600 of 3 000\n  \
             channels     viber, then sms\n\n  Recipients who already got this message will get it again.\n\n  \
             Type 2600 to send, or press Enter to cancel:\n"
        );
    }

    #[test]
    fn wrapped_fact_value_keeps_its_indentation() {
        let prompt =
            ConfirmationPrompt::new("x?", ExpectedAnswer::Yes, "go on").with_fact("recipients", "one two three four");
        let text = prompt.render_text().render(Some(25), false);
        assert!(text.contains("  recipients   one two\n               three four\n"), "{text}");
    }
}
