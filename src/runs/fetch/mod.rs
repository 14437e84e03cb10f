//! Fetching a list that is no file: what an address, a program, a database or an earlier run gives comes into a private file,
//! and from there on it is a list like any other.
//!
//! No secret is in any error, no shell reads a command, and nothing is fetched but when somebody wants it.

mod bound;
mod command;
mod input;
mod past;
mod query;
mod question;
mod spool;
mod url;
mod whole;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

pub(super) use past::reconcile_past;
pub use spool::FetchedList;
use spool::ListSpool;

use super::{CampaignList, Error, Inputs, PipedInput, Profiles, RunEvent, RunObserver};
use crate::finding::{Finding, rules};
use crate::ledger::Ledger;
use crate::manifest::{NotificationMethod, RecipientSource, SecretSource};

/// What fetching needs besides the campaign.
#[derive(Clone, Copy)]
pub struct FetchContext<'a> {
    /// The state folder, in which the list is kept while it is used.
    pub state: &'a Path,
    /// The ledger, where there is one.
    pub ledger: Option<&'a dyn Ledger>,
    /// Where profiles are found, whose keys no program gets.
    pub profiles: &'a Profiles,
    /// Gives a list that is piped in.
    pub input: PipedInput,
    /// Who is told.
    pub observer: &'a RunObserver,
}

/// Why a list did not come whole, and what to do.
struct FetchError {
    why: String,
    help: Option<String>,
}

impl FetchError {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), help: None }
    }

    fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

impl From<std::io::Error> for FetchError {
    fn from(error: std::io::Error) -> Self {
        Self::new(format!("cannot store the list in the state folder: {error}"))
    }
}

/// The campaign with its list at hand: fetched anew, unless it is a file.
///
/// # Errors
/// When the list does not come whole.
pub async fn fetch_list(inputs: &Arc<Inputs>, with: FetchContext<'_>) -> Result<Arc<Inputs>, Error> {
    let recipients = &inputs.campaign.recipients;
    if recipients.list_file().is_some() {
        return Ok(Arc::clone(inputs));
    }
    (with.observer)(RunEvent::Fetching { what: recipients.to_string() });
    let fetched = match recipients {
        RecipientSource::File(_) => return Ok(Arc::clone(inputs)),
        // It tells its own errors, which are of the ledger.
        RecipientSource::Run(past) => past::fetch_from_run(past, with, inputs).await?,
        RecipientSource::Url(wanted) => {
            fetch_within(url::fetch_from_url(wanted, create_spool(with)?), wanted.timeout).await
        }
        RecipientSource::Command(wanted) => {
            let hidden = list_secret_variables(inputs, with.profiles);
            fetch_within(command::fetch_from_command(wanted, &hidden, create_spool(with)?), wanted.timeout).await
        }
        RecipientSource::Sql(wanted) => {
            let today = inputs.campaign.today;
            fetch_within(query::fetch_from_query(wanted, today, create_spool(with)?), wanted.timeout).await
        }
        // Whoever pipes it decides how long that takes.
        RecipientSource::StandardInput => input::fetch_from_input(with.input, create_spool(with)?).await,
    };
    let spool = fetched.map_err(|failed| refuse_list(inputs, failed))?;
    if spool.is_empty() {
        let failed = FetchError::new("no data was received, not even a header")
            .with_help("send at least a header row, even if the list is empty");
        return Err(refuse_list(inputs, failed));
    }
    let list = spool.finish(recipients.to_string()).map_err(|error| refuse_list(inputs, error.into()))?;
    Ok(Arc::new(inputs.with_list(CampaignList::Fetched(Arc::new(list)))))
}

/// A secret that a source needs.
fn read_secret(kept: &SecretSource, what: &str) -> Result<SecretString, FetchError> {
    kept.read_secret(what, &|name| std::env::var(name).ok()).map_err(FetchError::new)
}

fn create_spool(with: FetchContext<'_>) -> Result<ListSpool, Error> {
    ListSpool::new(with.state).map_err(|error| Error::Storage(format!("cannot store the list: {error}")))
}

async fn fetch_within(
    fetching: impl Future<Output = Result<ListSpool, FetchError>>,
    longest: Duration,
) -> Result<ListSpool, FetchError> {
    let late = |_| {
        let why = format!("the list did not arrive within {} s", longest.as_secs());
        FetchError::new(why).with_help("increase `timeout`, or make the list smaller")
    };
    tokio::time::timeout(longest, fetching).await.map_err(late).flatten()
}

/// That the list did not come whole, where the campaign names it.
fn refuse_list(inputs: &Inputs, failed: FetchError) -> Error {
    let (campaign, FetchError { why, help }) = (&inputs.campaign, failed);
    let recipients = &campaign.recipients;
    let finding = Finding::new(&rules::RECIPIENTS_SOURCE, format!("cannot read the list ({recipients}): {why}"))
        .at(campaign.places.locate_key(&format!("recipients.{}", recipients.source_key())));
    Error::Findings(vec![match help {
        Some(help) => finding.help(help),
        None => finding,
    }])
}

/// The names of variables that hold secrets of ours, which no program that prints a list has to know.
fn list_secret_variables(inputs: &Inputs, profiles: &Profiles) -> Vec<String> {
    let gateways = profiles.load(Some(&inputs.campaign.file)).unwrap_or_default();
    let of_profiles = gateways.profiles().iter().flat_map(|profile| {
        let hooks = profile.hook.iter().flat_map(|hook| &hook.secrets);
        std::iter::once(&profile.api_key).chain(hooks).cloned().collect::<Vec<SecretSource>>()
    });
    let told = gateways.profiles().iter().filter_map(|profile| profile.notify.as_ref()).chain(&inputs.campaign.notify);
    let told = told.filter_map(|notify| match &notify.method {
        NotificationMethod::Post { url, .. } => Some(url.clone()),
        NotificationMethod::Command(_) => None,
    });
    let named = of_profiles.chain(told).filter_map(|kept| match kept {
        SecretSource::Env(name) => Some(name),
        SecretSource::File(_) => None,
    });
    named.collect()
}

/// A text of somebody else's without a secret that stands in it.
fn redact_secret(text: &str, secret: &SecretString) -> String {
    match secret.expose_secret() {
        "" => text.to_owned(),
        secret => text.replace(secret, "…"),
    }
}
