//! Errors of pages and actions, with their HTTP status and text.

use std::fmt;
use std::sync::Arc;

use axum::http::StatusCode;

use crate::web::html::TemplateError;
use crate::web::words::{PageLanguage, PageWords};
use campaign_engine::report::ResultsError;
use campaign_ledger::LedgerError;
use campaign_runs::{DecisionRefusal, Error, RetryRefusal};

/// The reason a page or an action failed.
#[derive(Debug)]
pub(super) enum PageError {
    /// The page or its subject does not exist.
    Unknown,
    /// A read or a check takes too long; a later request might succeed.
    Later,
    /// The page or action needs a right that the visitor lacks.
    NoPermission,
    /// The request does not come from this server's pages.
    ForeignRequest,
    /// A form is too long, or arrives too slowly.
    UnreadableForm,
    /// A form has invalid input.
    InvalidInput(InvalidInput),
    /// The `campaign_runs` crate or the ledger returned this error.
    Refused(Box<Error>),
    /// A page could not be rendered, or a file could not be read or written.
    Failed(String),
}

/// The invalid field of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidInput {
    /// The typed number of rows is wrong.
    Count {
        /// The number of rows that the decision affects.
        rows: u64,
    },
    /// The typed number of entries is wrong.
    Entries {
        /// The number of entries that the removal affects.
        entries: u64,
    },
    /// The typed number of messages is missing or not a number.
    Messages,
    /// No recipient was chosen.
    Recipients,
    /// The row is not a number.
    Row,
    /// No decision was chosen.
    Decision,
    /// The search term is invalid.
    Search,
    /// The phone number is invalid.
    Phone,
    /// The rows do not fit a sheet of a workbook.
    Sheet,
}

/// The text of an error.
pub(super) struct ErrorMessage {
    pub(super) status: StatusCode,
    /// The text in the page's language; `None` if there is only an English text.
    pub(super) message: Option<String>,
    /// The English text.
    pub(super) english: Option<String>,
}

impl PageError {
    /// Converts an error, and also returns the reason for the error in English.
    pub(super) fn from_error_with_reason(error: Error) -> (Self, String) {
        let reason =
            translate_error(PageWords::in_language(PageLanguage::English), &error).unwrap_or_else(|| error.to_string());
        (error.into(), reason)
    }

    /// Converts the error into an HTTP status and a translated message.
    pub(super) fn into_message(self, words: &PageWords) -> ErrorMessage {
        let with_status =
            |status, message: &str| ErrorMessage { status, message: Some(message.to_owned()), english: None };
        match self {
            Self::Unknown => with_status(StatusCode::NOT_FOUND, words.say("pages.does-not-exist")),
            Self::Later => with_status(StatusCode::SERVICE_UNAVAILABLE, words.say("pages.later")),
            Self::NoPermission => with_status(StatusCode::FORBIDDEN, words.say("pages.no-permission")),
            Self::ForeignRequest => with_status(StatusCode::FORBIDDEN, words.say("pages.foreign-request")),
            Self::UnreadableForm => with_status(StatusCode::BAD_REQUEST, words.say("pages.unreadable-form")),
            Self::InvalidInput(InvalidInput::Count { rows }) => {
                with_status(StatusCode::UNPROCESSABLE_ENTITY, &words.count("pages.invalid-count", rows, &[]))
            }
            Self::InvalidInput(InvalidInput::Entries { entries }) => {
                with_status(StatusCode::UNPROCESSABLE_ENTITY, &words.count("pages.invalid-entries", entries, &[]))
            }
            Self::InvalidInput(InvalidInput::Messages) => {
                with_status(StatusCode::UNPROCESSABLE_ENTITY, words.say("retry.no-count"))
            }
            Self::InvalidInput(InvalidInput::Recipients) => {
                with_status(StatusCode::UNPROCESSABLE_ENTITY, words.say("test.no-recipient"))
            }
            Self::InvalidInput(InvalidInput::Row) => {
                with_status(StatusCode::UNPROCESSABLE_ENTITY, words.say("test.no-row"))
            }
            Self::InvalidInput(InvalidInput::Decision) => {
                with_status(StatusCode::UNPROCESSABLE_ENTITY, words.say("pages.invalid-decision"))
            }
            Self::InvalidInput(InvalidInput::Search) => {
                with_status(StatusCode::UNPROCESSABLE_ENTITY, words.say("pages.invalid-search"))
            }
            Self::InvalidInput(InvalidInput::Sheet) => {
                with_status(StatusCode::UNPROCESSABLE_ENTITY, words.say("pages.sheet-full"))
            }
            Self::InvalidInput(InvalidInput::Phone) => {
                with_status(StatusCode::UNPROCESSABLE_ENTITY, words.say("pages.invalid-phone"))
            }
            Self::Refused(error) => {
                let message = translate_error(words, &error);
                let english = message.is_none().then(|| error.to_string());
                let status = if is_server_failure(&error) {
                    tracing::warn!("a dashboard request failed: {error}");
                    StatusCode::INTERNAL_SERVER_ERROR
                } else {
                    StatusCode::CONFLICT
                };
                ErrorMessage { status, message, english }
            }
            Self::Failed(why) => {
                tracing::warn!("a dashboard request failed: {why}");
                with_status(StatusCode::INTERNAL_SERVER_ERROR, words.say("pages.failed"))
            }
        }
    }
}

/// Whether the server or its ledger caused an error, instead of the request or a damaged record.
pub(super) fn is_server_failure(error: &Error) -> bool {
    match error {
        Error::Storage(_) | Error::Internal(_) => true,
        Error::Ledger(error) => !matches!(error, LedgerError::Purged { .. }) && !error.concerns_records(),
        _ => false,
    }
}

/// Translates some errors of the `campaign_runs` crate; returns `None` for all other errors.
fn translate_error(words: &PageWords, error: &Error) -> Option<String> {
    match error {
        Error::Retry(RetryRefusal::OtherNumber { number, .. }) => Some(words.count("retry.other-count", *number, &[])),
        Error::Retry(RetryRefusal::NeedsApproval { gateway, .. }) => {
            Some(words.say_with("retry.approval", &[("gateway", gateway)]))
        }
        Error::BusyRun { .. } => Some(words.say("pages.busy").to_owned()),
        Error::Decision(DecisionRefusal::Nothing { .. }) => Some(words.say("pages.no-doubt").to_owned()),
        Error::Decision(DecisionRefusal::DuplicatesNotAccepted { rows, .. }) => {
            Some(words.count("pages.invalid-count", *rows, &[]))
        }
        _ => None,
    }
}

/// The text for the log, in English.
impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("it does not exist"),
            Self::Later => f.write_str("it takes too long"),
            Self::NoPermission => f.write_str("the session does not have the required permission"),
            Self::ForeignRequest => f.write_str("the request comes from another site"),
            Self::UnreadableForm => f.write_str("the form is too long or arrived too slowly"),
            Self::InvalidInput(_) => f.write_str("a field has a wrong value"),
            Self::Refused(error) => write!(f, "{error}"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl From<Error> for PageError {
    fn from(error: Error) -> Self {
        Self::Refused(Box::new(error))
    }
}

impl From<LedgerError> for PageError {
    fn from(error: LedgerError) -> Self {
        Error::from(error).into()
    }
}

impl From<Arc<LedgerError>> for PageError {
    fn from(error: Arc<LedgerError>) -> Self {
        LedgerError::clone(&error).into()
    }
}

impl From<ResultsError> for PageError {
    fn from(error: ResultsError) -> Self {
        Error::from(error).into()
    }
}

impl From<std::io::Error> for PageError {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<TemplateError> for PageError {
    fn from(error: TemplateError) -> Self {
        Self::Failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_of_the_server_have_its_status() {
        let words = PageWords::in_language(PageLanguage::English);
        let status = |error: Error| PageError::from(error).into_message(words).status;
        let locked = LedgerError::Busy { path: "ledger.sqlite".to_owned(), who: "another process writes".to_owned() };
        assert_eq!(status(locked.into()), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(status(Error::Storage("the disk is full".to_owned())), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(status(Error::SingleRun { run: "sale@1".to_owned() }), StatusCode::CONFLICT);
    }
}
