//! Why a cell holds no number, in words for whoever mends the list.

/// Why a cell is not a number that can be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PhoneProblem {
    /// Nothing is written.
    #[error("no phone number")]
    Empty,
    /// Two numbers or more share the cell.
    #[error("more than one number in the cell; give each a row of its own")]
    Several,
    /// A spreadsheet wrote a power of ten.
    #[error(
        "a spreadsheet has shortened the number and its last digits are lost; format the column as text and enter it again"
    )]
    Rounded,
    /// Words stand in the cell.
    #[error("letters instead of a phone number")]
    Letters,
    /// Words stand before the number.
    #[error("text next to the number; put the number in its own column")]
    Words,
    /// The row has the headers of the list again.
    #[error("the row repeats the header; delete it")]
    Header,
    /// Signs that belong to no number stand in the cell.
    #[error("characters that a phone number cannot contain")]
    Symbols,
    /// The cell contains this sign, which phone numbers do not have.
    #[error("{}{}", SIGN, format_sign(*.0))]
    Sign(char),
    /// Digits are missing.
    #[error("too short for a phone number")]
    TooShort,
    /// There are too many digits.
    #[error("too long for a phone number")]
    TooLong,
    /// The number is national, and no region is known.
    #[error("no country code; write the number with `+`, or set `region`")]
    National,
    /// Its country has numbers of other lengths.
    #[error("wrong number of digits for its country")]
    Length,
    /// No country has the number's code.
    #[error("unknown country code")]
    Country,
    /// The country has no such number.
    #[error("not a valid number in its country")]
    Unassigned,
    /// It is one number with its country's code, and another one without.
    #[error(
        "ambiguous, because the digits are a valid number both with and without a country code; write it with `+`, or in national format"
    )]
    Ambiguous,
}

/// The beginning of the reason that names a sign.
const SIGN: &str = "a character that a phone number cannot contain: ";

/// A sign with its code point, unless it is easy to type. For a sign that cannot be displayed, only the code point.
fn format_sign(sign: char) -> String {
    let (itself, code) = (sign.escape_debug().to_string(), sign.escape_unicode());
    match sign {
        _ if sign.is_ascii_graphic() => format!("`{sign}`"),
        _ if itself.starts_with('\\') => format!("`{code}`"),
        _ => format!("`{sign}` (`{code}`)"),
    }
}

impl PhoneProblem {
    /// The problem with this reason. `None` for other reasons.
    #[must_use]
    pub fn from_reason(reason: &str) -> Option<Self> {
        let sign = || reason.starts_with(SIGN).then_some(Self::Symbols);
        Self::ALL.into_iter().find(|problem| problem.to_string() == reason).or_else(sign)
    }

    /// Every problem but [`Self::Sign`], which has a reason for each sign.
    pub const ALL: [PhoneProblem; 14] = [
        PhoneProblem::Empty,
        PhoneProblem::Several,
        PhoneProblem::Rounded,
        PhoneProblem::Letters,
        PhoneProblem::Words,
        PhoneProblem::Header,
        PhoneProblem::Symbols,
        PhoneProblem::TooShort,
        PhoneProblem::TooLong,
        PhoneProblem::National,
        PhoneProblem::Length,
        PhoneProblem::Country,
        PhoneProblem::Unassigned,
        PhoneProblem::Ambiguous,
    ];
}
