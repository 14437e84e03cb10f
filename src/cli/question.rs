//! The question before a change that cannot be undone: what changes, in facts, and what the operator types to confirm it.

use std::io::{BufRead as _, Write as _};

use super::failure::Failure;
use super::live_line;
use super::output::Output;
use super::text::{Line, Meaning, Span, Text, dim, plain, span, strong};
use crate::finding::harmless;
use crate::runs::{self, blocking};

/// How a message begins that says that the operator did not confirm.
pub(super) const CANCELLED: &str = "Cancelled. ";

/// The columns of the label of a fact.
const LABEL: usize = 13;
/// The columns before each line.
const INDENT: usize = 2;

/// What the operator types to confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The word `yes`.
    Yes,
    /// This word.
    Word(&'static str),
    /// The number of recipients or entries that are concerned.
    Number(u64),
}

/// A question before a change.
#[derive(Clone, Debug)]
pub(super) struct Question {
    title: String,
    facts: Text,
    notes: Text,
    answer: Answer,
    /// What the answer does, such as `send`.
    action: String,
    /// What Enter does.
    otherwise: &'static str,
}

impl Answer {
    /// Whether this was typed: the whole word or the exact number, in which blanks may group digits.
    pub(super) fn is(self, typed: &str) -> bool {
        match self {
            Answer::Yes => typed.trim() == "yes",
            Answer::Word(word) => typed.trim() == word,
            Answer::Number(number) => {
                let digits: String = typed.chars().filter(|character| !character.is_whitespace()).collect();
                digits.parse() == Ok(number)
            }
        }
    }

    fn shown(self) -> String {
        match self {
            Answer::Yes => "yes".to_owned(),
            Answer::Word(word) => word.to_owned(),
            Answer::Number(number) => number.to_string(),
        }
    }
}

impl Question {
    /// A question with this title, which is confirmed by an answer that does this.
    pub(super) fn new(title: impl Into<String>, answer: Answer, action: impl Into<String>) -> Self {
        let (title, action) = (title.into(), action.into());
        Self { title, facts: Text::new(), notes: Text::new(), answer, action, otherwise: "cancel" }
    }

    /// The same question, for which Enter does this.
    pub(super) fn or_else(self, otherwise: &'static str) -> Self {
        Self { otherwise, ..self }
    }

    /// Adds a fact with its label.
    pub(super) fn fact(mut self, label: &str, value: impl Into<Span>) -> Self {
        self.add(label, [value.into()]);
        self
    }

    /// Adds a fact with its label; an empty label continues the fact above.
    pub(super) fn add(&mut self, label: &str, value: impl IntoIterator<Item = Span>) {
        self.facts.push(match label {
            "" => Line::new(value).indented(INDENT + LABEL).hanging(0),
            label => {
                let label = dim(format!("{label:<LABEL$}"));
                Line::new([label].into_iter().chain(value)).indented(INDENT).hanging(LABEL)
            }
        });
    }

    /// Adds a line below the value of the fact above.
    pub(super) fn push(&mut self, line: Line) {
        self.facts.push(line.indented(INDENT + LABEL));
    }

    /// Adds a sentence below the facts.
    pub(super) fn note(mut self, sentence: impl Into<String>) -> Self {
        self.add_note(sentence);
        self
    }

    /// Adds a sentence below the facts.
    pub(super) fn add_note(&mut self, sentence: impl Into<String>) {
        self.notes.push(Line::new([plain(sentence)]).indented(INDENT).hanging(0));
    }

    /// Adds a warning or a note of a finding below the facts.
    pub(super) fn add_labelled(&mut self, label: &str, meaning: Meaning, message: &str) {
        self.notes.line(INDENT, [span(meaning, format!("{label}:")), plain(format!(" {message}"))]);
    }

    /// Adds a command that the operator may want instead.
    pub(super) fn command(mut self, what: &str, command: String) -> Self {
        self.notes.push(Line::new([plain(format!("{what}: {command}"))]).indented(INDENT).whole());
        self
    }

    /// The question as it is shown; the operator types behind its last line.
    pub(super) fn text(&self) -> Text {
        let mut text = Text::new();
        text.line(INDENT, [strong(self.title.as_str())]);
        for part in [&self.facts, &self.notes] {
            if !part.is_empty() {
                text.blank();
                text.extend(part.clone());
            }
        }
        text.blank();
        let (what, action, otherwise) = (self.answer.shown(), &self.action, self.otherwise);
        let prompt = [plain("Type "), strong(what), plain(format!(" to {action}, or press Enter to {otherwise}:"))];
        text.push(Line::new(prompt).indented(INDENT));
        text
    }

    /// Asks the operator at the terminal, and tells whether the answer confirms.
    pub(super) async fn ask(&self, output: &Output) -> Result<bool, runs::Error> {
        let typed = read_line(output.prompt(self.text())).await?;
        Ok(self.answer.is(&typed))
    }
}

/// Asks the operator at the terminal. Without a terminal only `--yes` confirms, which the caller has looked at before.
///
/// `change` is the change as a clause without a number of a person, such as "cancelling 7 rows of sale@1"; `unchanged` is
/// the sentence that says that nothing was done.
///
/// # Errors
/// When there is no terminal, or the operator typed something else.
pub(super) async fn confirm(output: &Output, question: Question, change: &str, unchanged: &str) -> Result<(), Failure> {
    if !output.can_ask() {
        let message = format!(
            "{change} needs confirmation, but the command cannot ask without a terminal or with `--json`; nothing was changed"
        );
        return Err(Failure::wrong(message)
            .with_help("run the command at a terminal to see what changes, or add `--yes` to confirm"));
    }
    match question.ask(output).await? {
        true => Ok(()),
        false => Err(Failure::wrong(format!("{CANCELLED}{unchanged}"))),
    }
}

/// The line that a person types at the terminal below `prompt`.
pub(super) async fn typed(prompt: String) -> Result<String, runs::Error> {
    read_line(harmless(&prompt)).await
}

/// The line that a person types behind a prompt, which is printed as it is.
async fn read_line(prompt: String) -> Result<String, runs::Error> {
    live_line::clear();
    blocking(move || {
        {
            // The lock ends before the wait: whoever interrupts it has something to say there too.
            let mut out = std::io::stderr().lock();
            // A terminal that cannot be written to cannot be read from either.
            let _ = write!(out, "{prompt}");
            let _ = out.flush();
        }
        live_line::set_typing(true);
        let mut typed = String::new();
        let _ = std::io::stdin().lock().read_line(&mut typed);
        live_line::set_typing(false);
        typed
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_is_the_whole_word_or_the_exact_number() {
        assert!(Answer::Yes.is(" yes\n") && Answer::Word("weaken").is("weaken\n"));
        assert!(Answer::Number(1_150).is("1150\n"));
        assert!(Answer::Number(1_150).is("1 150\n"));
        for typed in ["", "y", "YES", "no", "1150"] {
            assert!(!Answer::Yes.is(typed) && !Answer::Word("weaken").is(typed), "{typed:?}");
        }
        for typed in ["", "yes", "115", "11500", "-1150", "1,150"] {
            assert!(!Answer::Number(1_150).is(typed), "{typed:?}");
        }
    }

    #[test]
    fn question_has_a_title_aligned_facts_and_the_answer() {
        let question =
            Question::new("Send 2 600 messages through production (gateway.example)?", Answer::Number(2_600), "send")
                .fact("recipients", "2 600 of 3 000")
                .fact("channels", "viber, then sms")
                .note("Recipients who already got this message will get it again.");
        assert_eq!(
            question.text().render(Some(80), false),
            "  Send 2 600 messages through production (gateway.example)?\n\n  recipients   2 600 of 3 000\n  \
             channels     viber, then sms\n\n  Recipients who already got this message will get it again.\n\n  \
             Type 2600 to send, or press Enter to cancel:\n"
        );
    }

    #[test]
    fn value_of_a_fact_is_wrapped_below_itself() {
        let question = Question::new("x?", Answer::Yes, "go on").fact("recipients", "one two three four");
        let text = question.text().render(Some(25), false);
        assert!(text.contains("  recipients   one two\n               three four\n"), "{text}");
    }
}
