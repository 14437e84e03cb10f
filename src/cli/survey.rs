//! Loading what a command names, and looking at it: campaign, profile, texts, recipients.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Zoned;
use roaring::RoaringTreemap;
use secrecy::SecretString;

use super::context::Context;
use super::exit::{self, Failure};
use crate::check::{Prepared, Survey, Tee, Terms, Texts, against_profile, prepare, survey};
use crate::finding::{Finding, rules};
use crate::ledger::{Ledger, Run, RunId};
use crate::manifest::{Campaign, Destination, GatewaySearch, Gateways, Profile, load_campaign, load_gateways};
use crate::regular;

/// How much of a list is read at once.
const BUFFER: usize = 1 << 16;

/// A campaign with everything its files say.
pub(super) struct Inputs {
    pub(super) campaign: Campaign,
    /// Where it goes.
    pub(super) destination: Destination,
    /// What is worth knowing and refuses nothing.
    pub(super) warnings: Vec<Finding>,
    /// The date that texts see.
    pub(super) today: String,
}

/// The texts that others include or extend, by name.
type Includes = Vec<(String, String)>;

/// What a survey found, and what a run freezes.
pub(super) struct Looked {
    pub(super) survey: Survey,
    pub(super) includes: Includes,
    pub(super) sha256: String,
    /// The copy of the recipients.
    pub(super) copy: Option<File>,
}

/// Loads a campaign file, and the profile of its gateway or of the one named instead.
pub(super) fn load(context: &Context, file: &Path, gateway: Option<&str>) -> Result<Inputs, Failure> {
    let loaded = load_campaign(file);
    let Some(campaign) = loaded.value else { return Err(Failure::findings(loaded.findings)) };
    let campaign = match gateway {
        Some(gateway) => campaign.sent_through(gateway),
        None => campaign,
    };
    let mut findings = loaded.findings;
    let destination = if campaign.brief.is_rehearsal() {
        Destination::Rehearsal
    } else {
        let place = campaign.places.of_key("gateway").filter(|_| gateway.is_none());
        let gateways = gateways(context, Some(file))?;
        let profile = gateways.profile(&campaign.brief.gateway).cloned().map_err(|mut findings| {
            findings.iter_mut().filter(|finding| finding.place.is_none()).for_each(|finding| {
                finding.place.clone_from(&place);
            });
            Failure::findings(findings)
        })?;
        findings.extend(against_profile(&campaign, &profile));
        findings.extend(gateways.warnings());
        Destination::Live(Box::new(profile))
    };
    if findings.iter().any(Finding::is_error) {
        return Err(Failure::findings(findings));
    }
    let today = today(&campaign)?;
    Ok(Inputs { campaign, destination, warnings: findings, today })
}

/// The profile of that name; those beside it that cannot be used are only warned of.
pub(super) fn profile(context: &Context, name: &str, campaign: Option<&Path>) -> Result<Profile, Failure> {
    let gateways = gateways(context, campaign)?;
    let profile = gateways.profile(name).cloned().map_err(Failure::findings)?;
    context.output.findings(&gateways.warnings());
    Ok(profile)
}

/// The profile of the account that a run went through: by the name that it had, else under whatever name it has now.
pub(super) fn profile_of_account(context: &Context, run: &Run, campaign: Option<&Path>) -> Result<Profile, Failure> {
    let gateways = gateways(context, campaign)?;
    let renamed = gateways.profiles().iter().find(|profile| profile.account == run.account);
    match renamed.filter(|_| !gateways.names().any(|name| name == run.gateway)) {
        Some(renamed) => Ok(renamed.clone()),
        None => profile(context, &run.gateway, campaign),
    }
}

/// The API key of a profile.
pub(super) fn key_of(profile: &Profile) -> Result<SecretString, Failure> {
    profile.api_key.read(&|name| std::env::var(name).ok()).map_err(Failure::wrong)
}

/// The profiles that are found from a campaign's file, or from the working folder.
pub(super) fn gateways(context: &Context, campaign: Option<&Path>) -> Result<Gateways, Failure> {
    let search = GatewaySearch {
        explicit: context.global.gateways.clone(),
        campaign: Some(campaign.map_or_else(|| PathBuf::from("campaign.yaml"), Path::to_owned)),
        configuration: context.configuration(),
    };
    let loaded = load_gateways(&search);
    loaded.value.ok_or_else(|| Failure::findings(loaded.findings))
}

fn today(campaign: &Campaign) -> Result<String, Failure> {
    let now = Zoned::now();
    let now = match &campaign.brief.timezone {
        Some(zone) => now.in_tz(zone).map_err(|error| Failure::wrong(error.to_string()))?,
        None => now,
    };
    Ok(now.date().to_string())
}

impl Inputs {
    /// Opens the recipients and compiles the texts.
    pub(super) fn open(&self) -> Result<Prepared<BufReader<File>>, Failure> {
        let input = self.list()?;
        self.prepare(BufReader::with_capacity(BUFFER, input))
    }

    /// Looks at all recipients, and copies them where somebody wants a copy.
    pub(super) fn look(&self, already: &RoaringTreemap, copy: Option<File>) -> Result<Looked, Failure> {
        let mut tee = Tee::new(BufReader::with_capacity(BUFFER, self.list()?), copy);
        let looked = self
            .look_through(&mut tee, already)
            .and_then(|looked| Ok((looked, tee.finish().map_err(|error| self.unreadable(&error))?)));
        // A copy that fails ends the reading too, and the list is not to blame.
        if let Some(error) = tee.copy_failure() {
            let message = format!("the recipients cannot be copied to the state folder: {error}");
            return Err(Failure::storage(message));
        }
        let ((survey, includes), (copy, sha256)) = looked?;
        Ok(Looked { survey, includes, sha256, copy })
    }

    /// The texts that others include, and the hash of the recipients: what tells a changed input.
    pub(super) fn fingerprint(&self) -> Result<(Includes, String), Failure> {
        let includes = self.open()?.messages.includes().to_vec();
        let hashed = Tee::new(self.list()?, None::<File>).finish();
        let (_, sha256) = hashed.map_err(|error| self.unreadable(&error))?;
        Ok((includes, sha256))
    }

    /// What the list says of everybody, and the texts that others include.
    fn look_through(&self, list: impl Read + Send, already: &RoaringTreemap) -> Result<(Survey, Includes), Failure> {
        let mut prepared = self.prepare(list)?;
        let terms = Terms { brief: &self.campaign.brief, already };
        let survey = survey(&mut prepared, &terms).map_err(Failure::findings)?;
        Ok((survey, prepared.messages.includes().to_vec()))
    }

    fn unreadable(&self, error: &std::io::Error) -> Failure {
        Failure::wrong(format!("the recipients `{}` cannot be read: {error}", self.campaign.recipients.display()))
    }

    fn list(&self) -> Result<File, Failure> {
        let path = &self.campaign.recipients;
        regular::open(path).map_err(|error| {
            let place = self.campaign.places.of_key("recipients.file");
            let message = format!("the recipients `{}` cannot be opened: {error}", path.display());
            Failure::findings(vec![Finding::new(&rules::RECIPIENTS_MISSING, message).at(place)])
        })
    }

    fn prepare<R: Read>(&self, input: R) -> Result<Prepared<R>, Failure> {
        let campaign = &self.campaign;
        let mut load = |name: &str| campaign.folders.read(name).map(|(_, text)| text);
        let texts = Texts { places: Some(&campaign.places), load: &mut load };
        prepare(&campaign.brief, (input, &campaign.recipients), texts, &self.today).map_err(Failure::findings)
    }
}

/// The numbers that have a message of this campaign and edition through this account, and the round they are of.
///
/// The built-in sandbox forgets between runs, so a rehearsal is never guarded.
pub(super) async fn already_sent(
    ledger: &dyn Ledger,
    inputs: &Inputs,
    edition: &str,
) -> Result<(RoaringTreemap, u32), Failure> {
    let mut runs = runs_of(ledger, inputs).await?;
    runs.retain(|run| run.edition == edition);
    let round = runs.iter().map(|run| run.round).max().unwrap_or(1);
    if !inputs.destination.is_live() {
        return Ok((RoaringTreemap::new(), round));
    }
    let keys: Vec<RunId> = runs.iter().filter(|run| run.round == round).map(|run| run.key).collect();
    Ok((ledger.numbers_sent_to(&keys).await?, round))
}

/// The runs of this campaign through this account, whatever their edition, oldest first.
pub(super) async fn runs_of(ledger: &dyn Ledger, inputs: &Inputs) -> Result<Vec<Run>, Failure> {
    let (brief, live) = (&inputs.campaign.brief, inputs.destination.is_live());
    let mut runs = ledger.runs().await?;
    runs.retain(|run| {
        run.campaign == brief.name && run.live == live && run.went_through(&brief.gateway, inputs.destination.account())
    });
    Ok(runs)
}

/// Looks at all recipients off the asynchronous threads, with what the ledger knows, if there is one.
pub(super) async fn look(context: &Context, inputs: Arc<Inputs>) -> Result<Looked, Failure> {
    let opened = Arc::clone(&inputs);
    let edition = blocking(move || Ok(opened.open()?.edition)).await?;
    let ledger = context.existing_ledger().await?;
    if inputs.destination.is_live() {
        context.judge_results(ledger.as_deref(), &inputs.campaign.results_file()).await?;
    }
    let already = match ledger {
        Some(ledger) => already_sent(ledger.as_ref(), &inputs, &edition).await?.0,
        None => RoaringTreemap::new(),
    };
    blocking(move || inputs.look(&already, None)).await
}

/// Runs what reads files on a thread that may wait.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Failure::new(exit::BUG, format!("a task ended early; this is a bug: {error}"))),
    }
}
