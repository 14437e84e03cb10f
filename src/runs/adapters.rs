//! What the outside gives: storage, network, time, and somebody who listens. Surfaces choose the adapters.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use secrecy::SecretString;

use super::{FetchContext, Profiles, RunObserver};
use crate::domain::Endpoint;
use crate::gateway::{AnswerRules, GatewayAddress, JsonApi, JsonApiError};
use crate::ledger::Ledger;

/// Makes a client of a gateway; it asks nothing by that.
pub type Connect = fn(&GatewayAddress, Endpoint, SecretString, AnswerRules) -> Result<JsonApi, JsonApiError>;

/// Gives what is piped into the process; nothing where nobody pipes anything.
pub type PipedInput = fn() -> Option<Box<dyn Read + Send>>;

/// What a person can look at of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountView {
    /// The money that is left.
    Balance,
    /// The sender names.
    Senders,
    /// The SMS templates.
    SmsTemplates,
    /// The Viber templates.
    ViberTemplates,
}

/// Names the place where a surface shows this of the account behind a profile: a command, a link.
pub type NameView = Arc<dyn Fn(AccountView, &str) -> String + Send + Sync>;

/// What the outside gives to everything that a run does.
#[derive(Clone)]
pub struct Adapters {
    /// How people know this process: its machine and its number.
    pub process: String,
    /// The state folder.
    pub state: PathBuf,
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// Where profiles are found.
    pub profiles: Profiles,
    /// Makes the clients of gateways.
    pub connect: Connect,
    /// Gives a list that is piped in.
    pub input: PipedInput,
    /// The wall clock.
    pub clock: fn() -> Timestamp,
    /// Names what findings point at.
    pub name_view: NameView,
    /// Hears what happens.
    pub observer: RunObserver,
}

impl Adapters {
    /// What fetching a list needs.
    #[must_use]
    pub fn fetch_context(&self) -> FetchContext<'_> {
        let Self { state, ledger, profiles, observer, input, .. } = self;
        FetchContext { state, ledger: Some(ledger.as_ref()), profiles, input: *input, observer }
    }
}
