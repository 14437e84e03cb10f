//! Errors of the gateway that sending the same message again does not help. Pure.

/// Why sending the same message again fails again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LastingError {
    /// The number is not a valid phone number.
    InvalidNumber,
    /// The recipient opted out at the gateway or the operator.
    OptedOut,
    /// The text is empty.
    EmptyText,
}

/// Parts of errors and statuses, in lower case: those of the contract (7) and the platform, then those that other platforms use.
const SIGNS: [(LastingError, &[&str]); 3] = [
    (
        LastingError::InvalidNumber,
        &[
            "valid receiver phone number",
            "invalid destination",
            "invalid number",
            "invalid phone",
            "invalid msisdn",
            "wrong number",
        ],
    ),
    (
        LastingError::OptedOut,
        &["opted out", "opt-out", "unsubscribed", "blacklist", "black list", "blocklist", "stop list", "stop-list"],
    ),
    (LastingError::EmptyText, &["please enter sms text", "empty text"]),
];

impl LastingError {
    /// The kind of an error or a status of the gateway. `None` if sending again can help, or nothing is known of the error.
    #[must_use]
    pub fn of(error: &str) -> Option<Self> {
        let error = error.to_lowercase();
        let known = SIGNS.iter().find(|(_, signs)| signs.iter().any(|sign| error.contains(sign)));
        known.map(|(kind, _)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Status;

    #[test]
    fn lasting_errors_are_known_by_the_words_of_the_gateway() {
        for (error, kind) in [
            ("Please enter valid receiver phone number", Some(LastingError::InvalidNumber)),
            (Status::InvalidDestination.name(), Some(LastingError::InvalidNumber)),
            ("Number is in Stop List", Some(LastingError::OptedOut)),
            ("Please enter SMS text", Some(LastingError::EmptyText)),
            ("No route", None),
            ("Not enough money", None),
            ("Error in Alpha-name", None),
            (Status::InvalidSource.name(), None),
            ("", None),
        ] {
            assert_eq!(LastingError::of(error), kind, "{error}");
        }
    }
}
