//! Why somebody gets no page, or what they ordered was not done.

use std::fmt;
use std::sync::Arc;

use axum::http::StatusCode;

use crate::ledger::LedgerError;
use crate::report::ResultsError;
use crate::runs::{DecisionRefusal, Error};
use crate::web::html::TemplateError;
use crate::web::words::{PageLanguage, PageWords};

/// Why there is no such page now.
#[derive(Debug)]
pub(super) enum PageError {
    /// There is no such thing.
    Unknown,
    /// It takes longer than somebody waits; the next time it is there.
    Later,
    /// It needs a right that was not given.
    NoPermission,
    /// The request is none of a page of ours.
    ForeignRequest,
    /// What was ordered cannot be done so.
    InvalidInput(InvalidInput),
    /// What `runs` refused.
    Refused(Box<Error>),
    /// A page could not be made, or a file of ours not be read or written.
    Failed(String),
}

/// What is wrong with what somebody typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidInput {
    /// The number of rows is another one.
    Count {
        /// How many it is about.
        rows: u64,
    },
    /// No decision was chosen.
    Decision,
    /// What was looked for is nothing that can be.
    Search,
    /// What was typed is no number of a phone.
    Phone,
}

/// What a refusal tells.
pub(super) struct ErrorMessage {
    pub(super) status: StatusCode,
    /// In the page's language; nothing where only English words are known.
    pub(super) told: Option<String>,
    /// What is told in English.
    pub(super) english: Option<String>,
}

impl PageError {
    /// The refusal of an error, and its reason in English.
    pub(super) fn with_reason(error: Error) -> (Self, String) {
        let reason =
            translate_error(PageWords::in_language(PageLanguage::English), &error).unwrap_or_else(|| error.to_string());
        (error.into(), reason)
    }

    /// What it tells.
    pub(super) fn to_message(self, words: &PageWords) -> ErrorMessage {
        let said = |status, told: &str| ErrorMessage { status, told: Some(told.to_owned()), english: None };
        match self {
            Self::Unknown => said(StatusCode::NOT_FOUND, words.say("pages.unknown")),
            Self::Later => said(StatusCode::SERVICE_UNAVAILABLE, words.say("pages.later")),
            Self::NoPermission => said(StatusCode::FORBIDDEN, words.say("pages.not-given")),
            Self::ForeignRequest => said(StatusCode::FORBIDDEN, words.say("pages.not-ours")),
            Self::InvalidInput(InvalidInput::Count { rows }) => {
                said(StatusCode::UNPROCESSABLE_ENTITY, &words.count("pages.wrong-count", rows, &[]))
            }
            Self::InvalidInput(InvalidInput::Decision) => {
                said(StatusCode::UNPROCESSABLE_ENTITY, words.say("pages.wrong-decision"))
            }
            Self::InvalidInput(InvalidInput::Search) => {
                said(StatusCode::UNPROCESSABLE_ENTITY, words.say("pages.wrong-search"))
            }
            Self::InvalidInput(InvalidInput::Phone) => {
                said(StatusCode::UNPROCESSABLE_ENTITY, words.say("pages.wrong-phone"))
            }
            Self::Refused(error) => {
                let told = translate_error(words, &error);
                let english = told.is_none().then(|| error.to_string());
                ErrorMessage { status: StatusCode::CONFLICT, told, english }
            }
            Self::Failed(why) => {
                tracing::warn!("cannot render a page: {why}");
                said(StatusCode::INTERNAL_SERVER_ERROR, words.say("pages.failed"))
            }
        }
    }
}

/// What pages have own words for, of what `runs` refuses.
fn translate_error(words: &PageWords, error: &Error) -> Option<String> {
    match error {
        Error::BusyRun { .. } => Some(words.say("pages.busy").to_owned()),
        Error::Decision(DecisionRefusal::Nothing { .. }) => Some(words.say("pages.nothing-to-decide").to_owned()),
        Error::Decision(DecisionRefusal::DuplicatesNotAccepted { rows, .. }) => {
            Some(words.count("pages.wrong-count", *rows, &[]))
        }
        _ => None,
    }
}

/// For the log, which is in English.
impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("it does not exist"),
            Self::Later => f.write_str("it takes too long"),
            Self::NoPermission => f.write_str("the session has no permission"),
            Self::ForeignRequest => f.write_str("the request comes from another site"),
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
