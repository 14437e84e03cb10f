//! Why somebody gets no page, or what they ordered was not done.

use std::fmt;
use std::sync::Arc;

use axum::http::StatusCode;

use crate::ledger::LedgerError;
use crate::report::ResultsError;
use crate::runs::{DecisionRefusal, Error};
use crate::web::html::TemplateError;
use crate::web::words::{Language, Words};

/// Why there is no such page now.
#[derive(Debug)]
pub(super) enum Refusal {
    /// There is no such thing.
    Unknown,
    /// It takes longer than somebody waits; the next time it is there.
    Later,
    /// It needs a right that was not given.
    NotGiven,
    /// The request is none of a page of ours.
    NotOurs,
    /// What was ordered cannot be done so.
    Wrong(Wrong),
    /// What `runs` refused.
    Refused(Box<Error>),
    /// A page could not be made, or a file of ours not be read or written.
    Failed(String),
}

/// What is wrong with what somebody typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
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
pub(super) struct Message {
    pub(super) status: StatusCode,
    /// In the page's language; nothing where only English words are known.
    pub(super) told: Option<String>,
    /// What is told in English.
    pub(super) english: Option<String>,
}

impl Refusal {
    /// The refusal of an error, and its reason in English.
    pub(super) fn with_reason(error: Error) -> (Self, String) {
        let reason = known(Words::of(Language::English), &error).unwrap_or_else(|| error.to_string());
        (error.into(), reason)
    }

    /// What it tells.
    pub(super) fn message(self, words: &Words) -> Message {
        let said = |status, told: &str| Message { status, told: Some(told.to_owned()), english: None };
        match self {
            Self::Unknown => said(StatusCode::NOT_FOUND, words.say("pages.unknown")),
            Self::Later => said(StatusCode::SERVICE_UNAVAILABLE, words.say("pages.later")),
            Self::NotGiven => said(StatusCode::FORBIDDEN, words.say("pages.not-given")),
            Self::NotOurs => said(StatusCode::FORBIDDEN, words.say("pages.not-ours")),
            Self::Wrong(Wrong::Count { rows }) => {
                said(StatusCode::UNPROCESSABLE_ENTITY, &words.count("pages.wrong-count", rows, &[]))
            }
            Self::Wrong(Wrong::Decision) => said(StatusCode::UNPROCESSABLE_ENTITY, words.say("pages.wrong-decision")),
            Self::Wrong(Wrong::Search) => said(StatusCode::UNPROCESSABLE_ENTITY, words.say("pages.wrong-search")),
            Self::Wrong(Wrong::Phone) => said(StatusCode::UNPROCESSABLE_ENTITY, words.say("pages.wrong-phone")),
            Self::Refused(error) => {
                let told = known(words, &error);
                let english = told.is_none().then(|| error.to_string());
                Message { status: StatusCode::CONFLICT, told, english }
            }
            Self::Failed(why) => {
                tracing::warn!("cannot render a page: {why}");
                said(StatusCode::INTERNAL_SERVER_ERROR, words.say("pages.failed"))
            }
        }
    }
}

/// What pages have own words for, of what `runs` refuses.
fn known(words: &Words, error: &Error) -> Option<String> {
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
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("it does not exist"),
            Self::Later => f.write_str("it takes too long"),
            Self::NotGiven => f.write_str("the session has no permission"),
            Self::NotOurs => f.write_str("the request comes from another site"),
            Self::Wrong(_) => f.write_str("a field has a wrong value"),
            Self::Refused(error) => write!(f, "{error}"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Refused(Box::new(error))
    }
}

impl From<LedgerError> for Refusal {
    fn from(error: LedgerError) -> Self {
        Error::from(error).into()
    }
}

impl From<Arc<LedgerError>> for Refusal {
    fn from(error: Arc<LedgerError>) -> Self {
        LedgerError::clone(&error).into()
    }
}

impl From<ResultsError> for Refusal {
    fn from(error: ResultsError) -> Self {
        Error::from(error).into()
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<TemplateError> for Refusal {
    fn from(error: TemplateError) -> Self {
        Self::Failed(error.to_string())
    }
}
