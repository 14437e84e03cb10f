//! The addresses of webhooks of a profile, and whether who takes them knows the secret that they are signed with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use secrecy::SecretString;

use super::{Error, Profiles, RunEvent, RunObserver};
use crate::domain::OptOutWords;
use crate::gateway::{WebhookSecrets, WebhookUrls};
use crate::ledger::{Ledger, RunFilter};
use crate::manifest::Profile;

/// Where the webhooks of a profile's messages go; nothing where it does not say.
///
/// # Errors
/// When a secret cannot be read, or could be guessed.
pub fn load_hook(profile: &Profile) -> Result<Option<WebhookUrls>, Error> {
    let Some(settings) = &profile.hook else { return Ok(None) };
    let read = |source: &crate::manifest::SecretSource| {
        source.read_secret("the webhook secret", &|name| std::env::var(name).ok()).map_err(Error::Input)
    };
    let secrets: Vec<SecretString> = settings.secrets.iter().map(read).collect::<Result<_, _>>()?;
    let secrets = WebhookSecrets::new(&secrets)
        .map_err(|error| Error::Input(format!("`hook` of `{}`: {error}", profile.name)))?;
    Ok(Some(WebhookUrls::new(settings.public_url.as_str().to_owned(), secrets)))
}

/// What profiles say of webhooks.
#[derive(Debug)]
pub struct ProfileHooks {
    /// Their receivers.
    pub hooks: Vec<WebhookUrls>,
    /// The words by which whoever answers opts out, of all of them.
    pub opt_out_words: OptOutWords,
}

/// The receivers of webhooks of all profiles that are found: as from the working folder, and from these campaign files
/// and those of the runs that the ledger has. What cannot be used is told and left out.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn load_all_hooks(
    ledger: &dyn Ledger,
    profiles: &Profiles,
    files: &[PathBuf],
    observer: &RunObserver,
) -> Result<ProfileHooks, Error> {
    let runs = ledger.list_stored_runs(RunFilter { live: true, ..RunFilter::all() }).await?;
    let of_runs = runs.into_iter().flatten().filter_map(|run| run.file).map(PathBuf::from);
    // Profiles stand near a file; those of one folder are the same.
    let near: BTreeMap<Option<PathBuf>, Option<PathBuf>> = [None]
        .into_iter()
        .chain(files.iter().cloned().chain(of_runs).map(Some))
        .map(|file| (file.as_deref().and_then(Path::parent).map(Path::to_owned), file))
        .collect();
    let mut hooks: BTreeMap<String, WebhookUrls> = BTreeMap::new();
    let mut words = BTreeSet::new();
    for file in near.into_values() {
        let gateways = match profiles.load(file.as_deref()) {
            Ok(gateways) => gateways,
            Err(Error::Findings(findings)) => {
                observer(RunEvent::OtherProfiles(findings));
                continue;
            }
            Err(error) => return Err(error),
        };
        observer(RunEvent::OtherProfiles(gateways.collect_warnings()));
        for profile in gateways.profiles() {
            words.extend(profile.opt_out_words.iter().cloned());
            match load_hook(profile) {
                Ok(Some(hook)) => drop(hooks.insert(hook.account_url(), hook)),
                Ok(None) => {}
                Err(Error::Input(reason)) => observer(RunEvent::HookUnusable { profile: profile.name.clone(), reason }),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(ProfileHooks { hooks: hooks.into_values().collect(), opt_out_words: OptOutWords::default().with_words(words) })
}

/// Keeps with what secrets the webhooks to each address are verified, so that a run with another one is refused.
///
/// # Errors
/// When the ledger cannot be written.
pub async fn store_hook_secrets(ledger: &dyn Ledger, hooks: &[WebhookUrls]) -> Result<(), Error> {
    let mut known: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for hook in hooks {
        known.entry(hook.public_url()).or_default().extend(hook.secrets().check_values());
    }
    for (address, check_values) in known {
        ledger.keep_webhook_secrets(address, check_values).await?;
    }
    Ok(())
}

/// Whether the receiver at the address of a hook is known to have another secret.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn has_other_secret(ledger: &dyn Ledger, hook: &WebhookUrls) -> Result<bool, Error> {
    let known = ledger.load_webhook_secrets(hook.public_url()).await?;
    let first = hook.secrets().check_values().into_iter().next();
    Ok(!known.is_empty() && !first.is_some_and(|first| known.contains(&first)))
}

/// Refuses messages whose webhooks the receiver at that address would take for forged.
///
/// # Errors
/// When it would, or the ledger cannot be read.
pub async fn refuse_other_secret(
    ledger: &dyn Ledger,
    profile: &Profile,
    hook: Option<&WebhookUrls>,
) -> Result<(), Error> {
    let Some(hook) = hook else { return Ok(()) };
    if !has_other_secret(ledger, hook).await? {
        return Ok(());
    }
    Err(Error::Input(format!(
        "the `hook` secret of the profile `{}` differs from the secret of the webhook endpoint at {}, which would \
         reject every receipt; set both to the same secret, or restart `serve` with the new one",
        profile.name,
        hook.public_url()
    )))
}
