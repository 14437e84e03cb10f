//! Fetching lists that are not files: from a URL, program, database, standard input or earlier run into a private file.
//!
//! Errors contain no secrets, commands run without a shell, and a list is fetched only on request.

mod command;
mod query;
mod url;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

use super::guard::find_excluding_runs;
use super::{
    Adapters, CampaignList, Error, Inputs, PipedInput, Polling, Profiles, RunEvent, RunObserver, find_run, poll_run,
    reconcile_run,
};
use campaign_core::finding::{Finding, rules};
use campaign_core::private::{self, ExistingFile};
use campaign_engine::report::{format_count, is_owned, write_run_recipients};
use campaign_ledger::{Ledger, Run, RunProgress};
use campaign_manifest::{NotificationMethod, PastRecipients, RecipientSource, SecretSource};

/// The context, besides the campaign, that fetching needs.
#[derive(Clone, Copy)]
pub struct FetchContext<'a> {
    /// The state folder, which holds the list while it is used.
    pub state: &'a Path,
    /// The ledger, if there is one.
    pub ledger: Option<&'a dyn Ledger>,
    /// The locations of gateway profiles, whose secrets are hidden from programs.
    pub profiles: &'a Profiles,
    /// The function that returns the piped input.
    pub input: PipedInput,
    /// The observer of events.
    pub observer: &'a RunObserver,
}

/// The reason a list could not be fetched, with advice.
struct FetchError {
    reason: String,
    help: Option<String>,
}

impl FetchError {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), help: None }
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

/// Fetches the list, unless it is a file, and returns the campaign with the list.
///
/// # Errors
/// If the list cannot be fetched completely, or the ledger or state folder cannot be used.
pub async fn fetch_list(inputs: &Arc<Inputs>, context: FetchContext<'_>) -> Result<Arc<Inputs>, Error> {
    let recipients = &inputs.campaign.recipients;
    if recipients.list_file().is_some() {
        return Ok(Arc::clone(inputs));
    }
    (context.observer)(RunEvent::Fetching { what: recipients.to_string() });
    let fetched = match recipients {
        RecipientSource::File(_) => return Ok(Arc::clone(inputs)),
        // A ledger error fails the command. It is not a finding about the list.
        RecipientSource::Run(past) => fetch_from_run(past, context, inputs).await?,
        RecipientSource::Url(source) => {
            fetch_with_timeout(url::fetch_from_url(source, create_spool(context)?), source.timeout).await
        }
        RecipientSource::Command(source) => {
            let hidden = list_secret_variables(inputs, context.profiles)?;
            fetch_with_timeout(command::fetch_from_command(source, &hidden, create_spool(context)?), source.timeout)
                .await
        }
        RecipientSource::Sql(source) => {
            let today = inputs.campaign.today;
            fetch_with_timeout(query::fetch_from_query(source, today, create_spool(context)?), source.timeout).await
        }
        // There is no time limit: the process that pipes the list decides how long this takes.
        RecipientSource::StandardInput => command::fetch_from_input(context.input, create_spool(context)?).await,
    };
    let spool = fetched.map_err(|failed| unfetched_list_error(inputs, failed))?;
    if spool.is_empty() {
        let failed = FetchError::new("no data was received, not even a header")
            .with_help("send at least a header row, even if the list is empty");
        return Err(unfetched_list_error(inputs, failed));
    }
    let list = spool.finish(recipients.to_string()).map_err(|error| unfetched_list_error(inputs, error.into()))?;
    Ok(Arc::new(inputs.with_list(CampaignList::Fetched(Arc::new(list)))))
}

/// Reads a secret that a source needs. Errors name the secret by `description`.
fn read_secret(source: &SecretSource, description: &str) -> Result<SecretString, FetchError> {
    source.read_secret(description, &|name| std::env::var(name).ok()).map_err(FetchError::new)
}

fn create_spool(context: FetchContext<'_>) -> Result<ListSpool, Error> {
    ListSpool::new(context.state).map_err(|error| Error::Storage(format!("cannot store the list: {error}")))
}

/// Waits for a list, and returns an error after the time limit.
async fn fetch_with_timeout(
    fetching: impl Future<Output = Result<ListSpool, FetchError>>,
    limit: Duration,
) -> Result<ListSpool, FetchError> {
    let late = |_| {
        let reason = format!("the list did not arrive within {} s", limit.as_secs());
        FetchError::new(reason).with_help("increase `timeout`, or make the list smaller")
    };
    tokio::time::timeout(limit, fetching).await.map_err(late).flatten()
}

/// The error for a list that could not be fetched. The finding points to the key of the list in the campaign file.
fn unfetched_list_error(inputs: &Inputs, failed: FetchError) -> Error {
    let (campaign, FetchError { reason, help }) = (&inputs.campaign, failed);
    let recipients = &campaign.recipients;
    let finding = Finding::new(&rules::RECIPIENTS_SOURCE, format!("cannot read the list ({recipients}): {reason}"))
        .at(campaign.places.locate_key(&format!("recipients.{}", recipients.source_key())));
    Error::Findings(vec![match help {
        Some(help) => finding.help(help),
        None => finding,
    }])
}

/// The names of environment variables that contain secrets of profiles and notifications. They are hidden from list
/// commands.
///
/// # Errors
/// If the profiles file cannot be read, because it is then unknown which variables contain secrets.
fn list_secret_variables(inputs: &Inputs, profiles: &Profiles) -> Result<Vec<String>, Error> {
    let gateways = profiles.load(Some(&inputs.campaign.file))?;
    let profile_secrets = gateways.profiles().iter().flat_map(|profile| {
        let hook_secrets = profile.hook.iter().flat_map(|hook| &hook.secrets);
        std::iter::once(&profile.api_key).chain(hook_secrets).cloned().collect::<Vec<SecretSource>>()
    });
    let notifications =
        gateways.profiles().iter().filter_map(|profile| profile.notify.as_ref()).chain(&inputs.campaign.notify);
    let notifications = notifications.filter_map(|notify| match &notify.method {
        NotificationMethod::Post { url, .. } => Some(url.clone()),
        NotificationMethod::Command(_) => None,
    });
    let named = profile_secrets.chain(notifications).filter_map(|source| match source {
        SecretSource::Env(name) => Some(name),
        SecretSource::File(_) => None,
    });
    Ok(named.collect())
}

/// Redacts a secret in a text from another program.
fn redact_secret(text: &str, secret: &SecretString) -> String {
    match secret.expose_secret() {
        "" => text.to_owned(),
        secret => text.replace(secret, "…"),
    }
}

/// The maximum number of bytes of a list.
const MAX_BYTES: u64 = 4 << 30;

/// A list that is being fetched.
struct ListSpool {
    out: BufWriter<File>,
    path: PathBuf,
    written: u64,
    max_bytes: u64,
    is_kept: bool,
}

/// A list that was fetched.
#[derive(Debug)]
pub struct FetchedList {
    path: PathBuf,
    /// The name of the list in findings.
    place: PathBuf,
    /// Locked while the list is used, so that other processes do not remove it as an orphan.
    _lock: File,
}

impl ListSpool {
    /// Creates a file in the state folder, and removes files that ended processes left behind.
    fn new(state: &Path) -> io::Result<Self> {
        let folder = state.join("lists");
        private::create_folder(&folder)?;
        for entry in fs::read_dir(&folder)?.flatten() {
            if File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        let path = folder.join(format!("{:016x}", rand::random::<u64>()));
        let file = private::open_file(&path, ExistingFile::Truncate)?;
        file.lock()?;
        Ok(Self {
            out: BufWriter::with_capacity(1 << 16, file),
            path,
            written: 0,
            max_bytes: MAX_BYTES,
            is_kept: false,
        })
    }

    /// Whether the list is empty.
    fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// Finishes the list; findings refer to it as `place`.
    fn finish(mut self, place: String) -> io::Result<FetchedList> {
        self.out.flush()?;
        let lock = self.out.get_ref().try_clone()?;
        self.is_kept = true;
        Ok(FetchedList { path: self.path.clone(), place: place.into(), _lock: lock })
    }
}

impl Write for ListSpool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written += bytes.len() as u64;
        if self.written > self.max_bytes {
            return Err(io::Error::other(format!("the list is larger than {} GiB", self.max_bytes >> 30)));
        }
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for ListSpool {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl FetchedList {
    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the list in findings.
    pub fn place(&self) -> &Path {
        &self.place
    }
}

impl Drop for FetchedList {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The maximum time for which messages without a final status are polled before their recipients are selected.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Fetches the recipients of an earlier run, which must have ended.
async fn fetch_from_run(
    past: &PastRecipients,
    context: FetchContext<'_>,
    inputs: &Inputs,
) -> Result<Result<ListSpool, FetchError>, Error> {
    let no_such_run = || Error::NoSuchRun { name: past.run.clone(), near: None };
    let ledger = context.ledger.ok_or_else(no_such_run)?;
    let run = match find_run(ledger, &past.run).await {
        Ok(run) => run,
        Err(Error::NoSuchRun { near, .. }) => {
            let failed = FetchError::new(format!("there is no run `{}` in this ledger", past.run));
            return Ok(Err(FetchError { help: near.map(|near| format!("did you mean `{near}`?")), ..failed }));
        }
        Err(error) => return Err(error),
    };
    if run.progress == RunProgress::Open {
        let progress = if is_owned(ledger, &run).await? { "is being sent" } else { "is unfinished" };
        let failed = FetchError::new(format!("{} {progress}, so its recipients' statuses are not final", run.name()));
        return Ok(Err(failed.with_help("wait until the run ends, or cancel it with `stop --for-good`")));
    }
    let mut spool = create_spool(context)?;
    let written = write_run_recipients(ledger, &run, &past.states, &mut spool).await?;
    if written.undecided > 0 && inputs.destination.is_live() {
        (context.observer)(RunEvent::NotFinal {
            run: run.name(),
            messages: format_count(written.undecided, "message"),
        });
    }
    Ok(Ok(spool))
}

/// Updates message statuses of the earlier runs whose recipients a live campaign uses or excludes. An unknown run is
/// ignored here and reported when the recipients are selected.
pub(crate) async fn reconcile_past_runs(adapters: &Adapters, inputs: &Inputs) -> Result<(), Error> {
    let ledger = adapters.ledger.as_ref();
    let mut runs = Vec::new();
    if let RecipientSource::Run(past) = &inputs.campaign.recipients {
        runs.extend(find_run(ledger, &past.run).await.ok());
    }
    if let Some(past) = &inputs.campaign.brief.exclude {
        runs.extend(find_excluding_runs(ledger, past, inputs).await?.unwrap_or_default());
    }
    for run in runs {
        if run.live && run.progress != RunProgress::Open && inputs.destination.is_live() {
            update_statuses(adapters, run).await;
        }
    }
    Ok(())
}

/// Polls the gateway for message statuses of a run, and reconciles messages in doubt. If the gateway does not answer,
/// the known statuses are used.
async fn update_statuses(adapters: &Adapters, run: Run) {
    let name = run.name();
    if let Err(error) = poll_run(adapters, &run, Polling::Open, MAX_WAIT).await {
        tracing::warn!(run = name, "messages without a final status were not reconciled: {error}");
    }
    if let Err(error) = reconcile_run(adapters, run).await {
        tracing::warn!(run = name, "messages in doubt were not reconciled: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_and_orphaned_lists_are_removed() {
        let state = tempfile::tempdir().unwrap();
        let count = || fs::read_dir(state.path().join("lists")).unwrap().count();
        let mut spool = ListSpool::new(state.path()).unwrap();
        spool.write_all(b"phone\n").unwrap();
        let list = spool.finish("somewhere".to_owned()).unwrap();
        assert_eq!(fs::read(list.path()).unwrap(), b"phone\n");
        fs::write(state.path().join("lists/left"), "phone\n").unwrap();
        drop(ListSpool::new(state.path()).unwrap());
        assert_eq!(count(), 1, "a list that is in use is kept");
        drop(list);
        assert_eq!(count(), 0);
    }

    #[test]
    fn oversized_list_is_refused_before_it_fills_the_disk() {
        let state = tempfile::tempdir().unwrap();
        let mut spool = ListSpool::new(state.path()).unwrap();
        spool.max_bytes = 10;
        spool.write_all(b"0123456789").unwrap();
        assert!(spool.write_all(b"0").unwrap_err().to_string().contains("larger than"));
        drop(spool);
        assert_eq!(fs::read_dir(state.path().join("lists")).unwrap().count(), 0);
    }
}
