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
    /// Signs that belong to no number stand in the cell.
    #[error("signs that no phone number has")]
    Symbols,
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

impl PhoneProblem {
    /// Every problem.
    pub const ALL: [PhoneProblem; 12] = [
        PhoneProblem::Empty,
        PhoneProblem::Several,
        PhoneProblem::Rounded,
        PhoneProblem::Letters,
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
