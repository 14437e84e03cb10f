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
    #[error("words beside the number; give the number a column of its own")]
    Words,
    /// The row has the headers of the list again.
    #[error("the row repeats the header; delete it")]
    Header,
    /// Signs that belong to no number stand in the cell.
    #[error("signs that no phone number has")]
    Symbols,
    /// The cell contains this sign, which phone numbers do not have.
    #[error("{}{}", SIGN, shown(*.0))]
    Sign(char),
    /// Digits are missing.
    #[error("too short for a phone number")]
    TooShort,
    /// There are too many digits.
    #[error("too long for a phone number")]
    TooLong,
    /// The number is national, and no region is known.
    #[error("a number without its country's code; write it with `+`, or set `region`")]
    National,
    /// Its country has numbers of other lengths.
    #[error("not as many digits as a number of its country has")]
    Length,
    /// No country has the number's code.
    #[error("begins with the code of no country")]
    Country,
    /// The country has no such number.
    #[error("not a valid number in its country")]
    Unassigned,
    /// It is one number with its country's code, and another one without.
    #[error(
        "one number if it begins with its country's code, and another one if it does not; write it with `+`, or as it is dialled in its country"
    )]
    Ambiguous,
}

/// The beginning of the reason that names a sign.
const SIGN: &str = "a sign that no phone number has: ";

/// A sign with its code point, unless it is easy to type. For a sign that cannot be displayed, only the code point.
fn shown(sign: char) -> String {
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
    pub fn of_reason(reason: &str) -> Option<Self> {
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
