//! Errors of the gateway that sending the same message again does not help. Pure.

/// Why sending the same message again fails again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PermanentError {
    /// The number is not a valid phone number.
    InvalidNumber,
    /// The recipient opted out at the gateway or the operator.
    OptedOut,
    /// The text is empty.
    EmptyText,
}

/// Parts of errors and statuses, in lower case: those of the contract (7) and the platform, then those that other platforms use.
const ERROR_PARTS: [(PermanentError, &[&str]); 3] = [
    (
        PermanentError::InvalidNumber,
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
        PermanentError::OptedOut,
        &["opted out", "opt-out", "unsubscribed", "blacklist", "black list", "blocklist", "stop list", "stop-list"],
    ),
    (PermanentError::EmptyText, &["please enter sms text", "empty text"]),
];

impl PermanentError {
    /// The kind of an error or a status of the gateway. `None` if sending again can help, or nothing is known of the error.
    #[must_use]
    pub fn classify(error: &str) -> Option<Self> {
        let error = error.to_lowercase();
        let known = ERROR_PARTS.iter().find(|(_, signs)| signs.iter().any(|sign| error.contains(sign)));
        known.map(|(kind, _)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Status;

    #[test]
    fn permanent_errors_are_classified_by_gateway_text() {
        for (error, kind) in [
            ("Please enter valid receiver phone number", Some(PermanentError::InvalidNumber)),
            (Status::InvalidDestination.name(), Some(PermanentError::InvalidNumber)),
            ("Number is in Stop List", Some(PermanentError::OptedOut)),
            ("Please enter SMS text", Some(PermanentError::EmptyText)),
            ("No route", None),
            ("Not enough money", None),
            ("Error in Alpha-name", None),
            (Status::InvalidSource.name(), None),
            ("", None),
        ] {
            assert_eq!(PermanentError::classify(error), kind, "{error}");
        }
    }
}
