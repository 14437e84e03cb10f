//! The question before a change that cannot be undone, for commands that send no messages.

use super::consent::typed;
use super::failure::Failure;
use super::output::Output;

/// What the operator types to confirm.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// The word `yes`.
    Yes,
    /// The number of entries that change.
    Number(u64),
}

/// A change that needs a confirmation.
pub(super) struct Question<'q> {
    /// What the command is about to change, as lines that end with a line break.
    pub(super) preview: &'q str,
    /// The same as a clause without a number of a person, such as "cancelling 7 rows of sale@1".
    pub(super) change: &'q str,
    /// What the answer does, such as "cancel 7 rows".
    pub(super) action: &'q str,
    pub(super) answer: Answer,
}

/// Asks the operator at the terminal. Without a terminal only `--yes` confirms, which the caller has looked at before.
///
/// # Errors
/// When there is no terminal, or the operator typed something else.
pub(super) async fn confirm(output: &Output, question: Question<'_>) -> Result<(), Failure> {
    let Question { preview, change, action, answer } = question;
    if !output.can_ask() {
        let message = format!(
            "{change} needs confirmation, but the command cannot ask without a terminal or with `--json`; nothing was changed"
        );
        return Err(
            Failure::wrong(message).with_help("run it at a terminal to see what changes, or add `--yes` to confirm")
        );
    }
    let what = match answer {
        Answer::Yes => "`yes`".to_owned(),
        Answer::Number(number) => number.to_string(),
    };
    let typed = typed(format!("{preview}Type {what} to {action}, or press Enter to change nothing: ")).await?;
    match answer.is(&typed) {
        true => Ok(()),
        false => Err(Failure::wrong("not confirmed; nothing was changed")),
    }
}

impl Answer {
    fn is(self, typed: &str) -> bool {
        match self {
            Answer::Yes => typed.trim() == "yes",
            Answer::Number(number) => {
                let digits: String = typed.chars().filter(|character| !character.is_whitespace()).collect();
                digits.parse() == Ok(number)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_is_the_whole_word_or_the_exact_number() {
        assert!(Answer::Yes.is(" yes\n"));
        assert!(Answer::Number(1_150).is("1150\n"));
        assert!(Answer::Number(1_150).is("1 150\n"));
        for typed in ["", "y", "YES", "no", "1150"] {
            assert!(!Answer::Yes.is(typed), "{typed:?}");
        }
        for typed in ["", "yes", "115", "11500", "-1150", "1,150"] {
            assert!(!Answer::Number(1_150).is(typed), "{typed:?}");
        }
    }
}
