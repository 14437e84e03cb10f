//! The folder of campaigns: what is in it, and who may look at it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::civil::Date;
use secrecy::ExposeSecret as _;
use subtle::ConstantTimeEq as _;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::task::TaskTracker;

use crate::connector::arguments::ToolArguments;
use crate::connector::caller::Caller;
use crate::connector::error::ToolError;
use crate::finding::Finding;
use crate::manifest::{Campaign, CampaignDay, LoadedFile, PathScope, load_campaign_within};
use crate::runs::{Adapters, Error, Inputs, list_campaign_files, read_api_key, run_blocking, short_digest};

/// Makes a command to suggest to the operator of these arguments.
pub type SuggestedCommand = Box<dyn Fn(&str) -> String + Send + Sync>;

/// The campaigns of a folder, which go through the profile of the connector.
pub struct Campaigns {
    folder: PathBuf,
    /// What its campaigns may open: the folder.
    reach: PathScope,
    pub(super) command: SuggestedCommand,
    /// Held by who looks at a whole list, which takes all cores.
    turn: Semaphore,
    /// The runs that began here and are being sent, each a task of its own.
    pub(super) runs: TaskTracker,
}

impl Campaigns {
    /// Those of a folder.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn from_folder(folder: &Path, command: SuggestedCommand) -> io::Result<Self> {
        list_campaign_files(folder)?;
        let (folder, reach) = (folder.canonicalize()?, PathScope::within(folder)?);
        Ok(Self { folder, reach, command, turn: Semaphore::new(1), runs: TaskTracker::new() })
    }

    /// The folder, for a caller who shows the key that the profile has now; anybody else sees nothing of it.
    pub(in crate::connector) fn open_for<'a>(
        self: &'a Arc<Self>,
        caller: &'a Caller<'a>,
    ) -> Result<OpenFolder<'a>, ToolError> {
        let (adapters, gateway) = (caller.adapters, caller.account.profile.name.as_str());
        let profile = adapters
            .profiles
            .load(None)
            .and_then(|found| found.find_profile(gateway).cloned().map_err(Error::Findings));
        let own = profile.and_then(|profile| read_api_key(&profile));
        let own = own.map_err(|error| {
            tracing::error!("cannot allow access to the campaigns: {}", describe_error(&error));
            access_denied()
        })?;
        match own.expose_secret().as_bytes().ct_eq(caller.key.expose_secret().as_bytes()).into() {
            true => Ok(OpenFolder { campaigns: self, adapters, gateway }),
            false => Err(access_denied()),
        }
    }

    /// What comes when none of its runs is being sent any more.
    pub(in crate::connector) fn wait_for_runs(&self) -> impl Future<Output = ()> + use<> {
        let runs = self.runs.clone();
        async move {
            runs.close();
            runs.wait().await;
        }
    }
}

/// Why something was not done, in one sentence.
pub(super) fn describe_error(error: &Error) -> String {
    let problems = error.findings().iter().filter(|finding| finding.is_error()).map(describe_finding);
    std::iter::once(error.to_string()).chain(problems).collect::<Vec<_>>().join("; ")
}

fn access_denied() -> ToolError {
    ToolError::new("access_denied", "Access denied").with_how_to(
        "only calls with the API key of the connector's own profile can use its campaigns; ask the connector's \
         operator",
    )
}

/// The folder of campaigns, for somebody who may see it.
pub(in crate::connector) struct OpenFolder<'a> {
    pub(super) campaigns: &'a Arc<Campaigns>,
    pub(super) adapters: &'a Adapters,
    /// The profile that its campaigns go through.
    pub(super) gateway: &'a str,
}

impl OpenFolder<'_> {
    /// Its campaign files.
    pub(super) fn campaign_files(&self) -> Result<Vec<PathBuf>, ToolError> {
        list_campaign_files(&self.campaigns.folder).map_err(|error| {
            tracing::error!("cannot read the campaigns folder: {error}");
            ToolError::new(
                "internal",
                "cannot read the campaigns folder; the connector's operator can find the cause in the log",
            )
        })
    }

    /// The file of the campaign that a call names. It is one of the folder's: no path is made of what was named.
    pub(super) fn find_file(&self, arguments: &ToolArguments) -> Result<PathBuf, ToolError> {
        let named = arguments.text("campaign");
        let files = self.campaign_files()?;
        if let Some(file) = files.iter().find(|file| file_name(file) == named) {
            return Ok(file.clone());
        }
        let mut same = files.into_iter().filter(|file| self.read_name(file).is_some_and(|name| name == named));
        match (same.next(), same.next()) {
            (Some(file), None) => Ok(file),
            (Some(_), Some(_)) => Err(ToolError::invalid_argument(
                "several files contain a campaign with this name; set `campaign` to the name of the file",
            )),
            (None, _) => Err(ToolError::invalid_argument("no campaign or file has this name")
                .with_how_to("call list_campaigns for the names")),
        }
    }

    /// The campaign of a file on a day, and what is wrong with it. Nothing outside of the folder is opened.
    pub(super) fn load_campaign(&self, file: &Path, day: CampaignDay) -> LoadedFile<Campaign> {
        load_campaign_within(file, day, self.campaigns.reach.clone())
    }

    /// The name of the campaign that a file describes, which is the same on every day; nothing if its file has errors.
    pub(super) fn read_name(&self, file: &Path) -> Option<String> {
        Some(self.load_campaign(file, CampaignDay::Coming(Date::ZERO)).value?.brief.name)
    }

    /// The campaign that a call names, as it goes through the connector's profile. It loses its program for notifications:
    /// whoever can write a campaign file could have any program started by it.
    pub(super) async fn load_inputs(&self, file: PathBuf) -> Result<Arc<Inputs>, Error> {
        let (profiles, gateway, reach) =
            (self.adapters.profiles.clone(), self.gateway.to_owned(), self.campaigns.reach.clone());
        let day = CampaignDay::Of((self.adapters.clock)());
        run_blocking(move || {
            let inputs = Inputs::load_with_reach(&file, Some(&gateway), &profiles, (day, reach))?;
            let Campaign { brief, .. } = &inputs.campaign;
            if inputs.campaign.has_gateway_key() && inputs.own_gateway != gateway {
                return Err(Error::Input(format!(
                    "the campaign `{}` uses the gateway `{}`, but this connector uses `{gateway}`; start a connector \
                     for that gateway",
                    brief.name, inputs.own_gateway,
                )));
            }
            Ok(Arc::new(inputs.without_notify_command()))
        })
        .await?
    }

    /// The campaign that a call names, which is not one that runs by itself.
    ///
    /// Whoever can write a campaign file could have any program started by its list, so only a person has one fetched.
    pub(super) async fn load_inputs_to_send(&self, file: PathBuf) -> Result<Arc<Inputs>, Error> {
        let inputs = self.load_inputs(file).await?;
        if inputs.list.is_unfetched() {
            return Err(Error::Input(format!(
                "the list of `{}` is {}, which is fetched only when a person runs the campaign with `{}`",
                inputs.campaign.brief.name,
                inputs.campaign.recipients,
                (self.campaigns.command)("run FILE"),
            )));
        }
        match inputs.campaign.schedule {
            None => Ok(inputs),
            Some(_) => Err(Error::Input(format!(
                "the campaign `{}` has a schedule, so it runs automatically after a person activates it with `{}`",
                inputs.campaign.brief.name,
                (self.campaigns.command)("schedule add FILE"),
            ))),
        }
    }

    /// Waits until nobody else looks at a whole list.
    pub(super) async fn acquire_turn(&self) -> Option<SemaphorePermit<'_>> {
        self.campaigns.turn.acquire().await.ok()
    }

    /// What a person has to do before what was planned is sent.
    pub(super) fn describe_approval(&self, inputs: &Inputs, digest: &str) -> String {
        // Who can approve, and by which key, may be said in the profile.
        let signed = inputs.destination.profile().is_some_and(|profile| profile.approval.is_some());
        let key = if signed { " --key FILE" } else { "" };
        let approve = (self.campaigns.command)(&format!("approve {}{key}", short_digest(digest)));
        format!(
            "show the plan to the person you work for. They approve it with `{approve}` in their own terminal; then \
             call run_campaign to send it"
        )
    }
}

/// Why a tool has no result.
pub(super) fn refuse_campaign(error: Error) -> ToolError {
    match error {
        Error::Unanswered { .. } | Error::HostChanged { .. } => error.into(),
        Error::Busy { .. } | Error::BusyRun { .. } => ToolError::new("busy", describe_error(&error)),
        error => ToolError::new("campaign_refused", describe_error(&error)),
    }
}

/// What is wrong, where, and what to do.
fn describe_finding(finding: &Finding) -> String {
    let place = finding
        .place
        .as_ref()
        .map(|place| format!("{}:{}:{}: ", file_name(place.source.path()), place.line_number(), place.column_number()));
    let help = finding.help.as_ref().map(|help| format!(" (help: {help})"));
    format!("{}{}{}", place.unwrap_or_default(), finding.message, help.unwrap_or_default())
}

/// The name of a file in its folder.
pub(super) fn file_name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
