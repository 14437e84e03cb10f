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
use spool::Spool;

use super::{Error, Event, Inputs, List, Observer, PipedInput, Profiles};
use crate::finding::{Finding, rules};
use crate::ledger::Ledger;
use crate::manifest::{KeySource, NotifyWay, Recipients};

/// What fetching needs besides the campaign.
#[derive(Clone, Copy)]
pub struct Fetching<'a> {
    /// The state folder, in which the list is kept while it is used.
    pub state: &'a Path,
    /// The ledger, where there is one.
    pub ledger: Option<&'a dyn Ledger>,
    /// Where profiles are found, whose keys no program gets.
    pub profiles: &'a Profiles,
    /// Gives a list that is piped in.
    pub input: PipedInput,
    /// Who is told.
    pub observer: &'a Observer,
}

/// Why a list did not come whole, and what to do.
struct Failed {
    why: String,
    help: Option<String>,
}

impl Failed {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), help: None }
    }

    fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self::new(format!("cannot store the list in the state folder: {error}"))
    }
}

/// The campaign with its list at hand: fetched anew, unless it is a file.
///
/// # Errors
/// When the list does not come whole.
pub async fn fetch(inputs: &Arc<Inputs>, with: Fetching<'_>) -> Result<Arc<Inputs>, Error> {
    let recipients = &inputs.campaign.recipients;
    if recipients.file().is_some() {
        return Ok(Arc::clone(inputs));
    }
    (with.observer)(Event::Fetching { what: recipients.to_string() });
    let fetched = match recipients {
        Recipients::File(_) => return Ok(Arc::clone(inputs)),
        // It tells its own errors, which are of the ledger.
        Recipients::Run(past) => past::fetch(past, with, inputs).await?,
        Recipients::Url(wanted) => bounded(url::fetch(wanted, spool(with)?), wanted.timeout).await,
        Recipients::Command(wanted) => {
            let hidden = secrets(inputs, with.profiles);
            bounded(command::fetch(wanted, &hidden, spool(with)?), wanted.timeout).await
        }
        Recipients::Sql(wanted) => {
            let today = inputs.campaign.today;
            bounded(query::fetch(wanted, today, spool(with)?), wanted.timeout).await
        }
        // Whoever pipes it decides how long that takes.
        Recipients::StandardInput => input::fetch(with.input, spool(with)?).await,
    };
    let spool = fetched.map_err(|failed| refused(inputs, failed))?;
    if spool.is_empty() {
        let failed = Failed::new("no data was received, not even a header")
            .help("send at least a header row, even if the list is empty");
        return Err(refused(inputs, failed));
    }
    let list = spool.finish(recipients.to_string()).map_err(|error| refused(inputs, error.into()))?;
    Ok(Arc::new(inputs.with_list(List::Fetched(Arc::new(list)))))
}

/// A secret that a source needs.
fn secret(kept: &KeySource, what: &str) -> Result<SecretString, Failed> {
    kept.read(what, &|name| std::env::var(name).ok()).map_err(Failed::new)
}

fn spool(with: Fetching<'_>) -> Result<Spool, Error> {
    Spool::new(with.state).map_err(|error| Error::Storage(format!("cannot store the list: {error}")))
}

async fn bounded(fetching: impl Future<Output = Result<Spool, Failed>>, longest: Duration) -> Result<Spool, Failed> {
    let late = |_| {
        let why = format!("the list did not arrive within {} s", longest.as_secs());
        Failed::new(why).help("increase `timeout`, or make the list smaller")
    };
    tokio::time::timeout(longest, fetching).await.map_err(late).flatten()
}

/// That the list did not come whole, where the campaign names it.
fn refused(inputs: &Inputs, failed: Failed) -> Error {
    let (campaign, Failed { why, help }) = (&inputs.campaign, failed);
    let recipients = &campaign.recipients;
    let finding = Finding::new(&rules::RECIPIENTS_SOURCE, format!("cannot read the list ({recipients}): {why}"))
        .at(campaign.places.of_key(&format!("recipients.{}", recipients.key())));
    Error::Findings(vec![match help {
        Some(help) => finding.help(help),
        None => finding,
    }])
}

/// The names of variables that hold secrets of ours, which no program that prints a list has to know.
fn secrets(inputs: &Inputs, profiles: &Profiles) -> Vec<String> {
    let gateways = profiles.load(Some(&inputs.campaign.file)).unwrap_or_default();
    let of_profiles = gateways.profiles().iter().flat_map(|profile| {
        let hooks = profile.hook.iter().flat_map(|hook| &hook.secrets);
        std::iter::once(&profile.api_key).chain(hooks).cloned().collect::<Vec<KeySource>>()
    });
    let told = gateways.profiles().iter().filter_map(|profile| profile.notify.as_ref()).chain(&inputs.campaign.notify);
    let told = told.filter_map(|notify| match &notify.way {
        NotifyWay::Post { url, .. } => Some(url.clone()),
        NotifyWay::Command(_) => None,
    });
    let named = of_profiles.chain(told).filter_map(|kept| match kept {
        KeySource::Env(name) => Some(name),
        KeySource::File(_) => None,
    });
    named.collect()
}

/// A text of somebody else's without a secret that stands in it.
fn without(text: &str, secret: &SecretString) -> String {
    match secret.expose_secret() {
        "" => text.to_owned(),
        secret => text.replace(secret, "…"),
    }
}
