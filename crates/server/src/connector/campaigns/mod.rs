//! Tools for the campaigns of a folder, for callers with the key of the connector's profile.
//!
//! - `review_tools`: listing, checking and previewing campaigns, and the status of runs;
//! - `run_tools`: planning and running a campaign, and pauses of the runs that are being sent.
//!
//! These tools supplement the account's tools. The `runs` crate does the work, as it does for the command line.

mod review_tools;
mod run_tools;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::civil::Date;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::task::TaskTracker;

use self::run_tools::RunWaits;
use super::tools::{McpTool, ToolAnnotations, object_schema, text_schema};
use crate::connector::arguments::ToolArguments;
use crate::connector::error::ToolError;
use crate::connector::methods::Caller;
use campaign_core::finding::Finding;
use campaign_manifest::{Campaign, CampaignDay, LoadedFile, NOTIFY_COMMAND, PathScope, load_campaign_within};
use campaign_runs::{Adapters, Error, Inputs, list_campaign_files, read_api_key, run_blocking, short_digest};

/// The tools that send nothing, in the order in which they are listed.
pub(super) static READ_TOOLS: [McpTool; 5] = [
    review_tools::LIST_CAMPAIGNS,
    review_tools::CHECK_CAMPAIGN,
    review_tools::PREVIEW_CAMPAIGN,
    run_tools::PLAN_CAMPAIGN,
    review_tools::RUN_STATUS,
];
/// The tools for sending, present only if sending is enabled.
pub(super) static SEND_TOOLS: [McpTool; 1] = [run_tools::RUN_CAMPAIGN];

/// The annotations of a tool that reads only files and the ledger of this machine.
const LOCAL: ToolAnnotations = ToolAnnotations { open_world: false, ..ToolAnnotations::READING };

/// The schema of a campaign tool's arguments: the campaign and these properties.
fn campaign_arguments_schema(more: Value) -> Value {
    let campaign = json!({
        "type": "string", "minLength": 1, "maxLength": 255,
        "description": "The name of a campaign or of its file, as returned by `list_campaigns`; never a path.",
    });
    let mut schema = object_schema(more, &["campaign"]);
    schema["properties"]["campaign"] = campaign;
    schema
}

/// The schema of row counts by state.
fn counts_schema() -> Value {
    json!({
        "type": "object", "additionalProperties": { "type": "integer" },
        "description": "The number of rows in each state: planned, skipped, invalid, accepted, delivered, read, \
                        in_doubt and others. Each row is in one state: `delivered` excludes messages that were \
                        `read`.",
    })
}

/// The schema of recipient counts by country.
fn abroad_schema() -> Value {
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": { "country": { "type": ["string", "null"] }, "recipients": { "type": "integer" } },
            "required": ["country", "recipients"],
            "additionalProperties": false,
        },
        "description": "The number of recipients outside the gateway profile's home countries, by country (ISO 3166 \
                        code, null if unknown). Show these to the user.",
    })
}

/// The schema of an integer.
fn number_schema(description: &str) -> Value {
    json!({ "type": "integer", "description": description })
}

/// The properties of a run that all tools return.
fn run_property_schemas() -> Value {
    json!({
        "run": text_schema("The name of the run."),
        "campaign": text_schema("The name of the campaign."),
        "gateway": text_schema("The gateway. `sandbox` means a rehearsal, which sends no real messages."),
        "rows": number_schema("The number of rows in the list."),
        "counts": counts_schema(),
        "delivered_or_read": number_schema("The number of delivered messages, including messages that were read. Report this \
                                     number as delivered."),
        "state": text_schema("The state of the run: sending, stopped, interrupted, open, finished, given_up, replaced or \
                       cancelled."),
        "stopped": text_schema("The reason why the run stopped, as a code."),
        "why": text_schema("The reason why the run stopped, as a sentence."),
    })
}

/// Adds properties to the properties of a schema.
fn add_properties(properties: &mut Value, more: Value) {
    if let (Value::Object(properties), Value::Object(more)) = (properties, more) {
        properties.extend(more);
    }
}

/// A note that the connector does not start the campaign's notification program, if the campaign has such a program.
fn notify_command_note(inputs: &Inputs) -> Option<&'static str> {
    inputs.campaign.places.locate_key(NOTIFY_COMMAND)?;
    Some(
        "this connector does not run the campaign's `notify.command`, so it sends no notification that way; \
         `notify.url` and `notify` in the profile's policy still work",
    )
}

/// Removes null members from an object.
fn remove_nulls(mut object: Value) -> Value {
    if let Value::Object(members) = &mut object {
        members.retain(|_, member| !member.is_null());
    }
    object
}

/// Renders the command-line remedy for an error; `None` if there is no remedy.
pub(super) type RenderRemedy = dyn Fn(&Error) -> Option<String> + Send + Sync;

/// Advice for the operator, which only the command line can write.
pub struct OperatorAdvice {
    /// Renders a command from these arguments.
    pub command: Box<dyn Fn(&str) -> String + Send + Sync>,
    /// Renders the command-line remedy for an error.
    pub remedy: Box<RenderRemedy>,
}

/// The campaigns of a folder, which use the profile of the connector.
pub struct Campaigns {
    folder: PathBuf,
    /// The files that the campaigns may open: only files in the folder.
    reach: PathScope,
    advice: OperatorAdvice,
    /// One permit for reading a whole list, which uses all cores.
    list_permit: Semaphore,
    /// Tasks of the runs that were started here.
    runs: TaskTracker,
    /// The pauses of those runs.
    waits: Arc<RunWaits>,
}

impl Campaigns {
    /// Opens a folder of campaigns.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn open(folder: &Path, advice: OperatorAdvice) -> io::Result<Self> {
        list_campaign_files(folder)?;
        let (folder, reach) = (folder.canonicalize()?, PathScope::within(folder)?);
        Ok(Self {
            folder,
            reach,
            advice,
            list_permit: Semaphore::new(1),
            runs: TaskTracker::new(),
            waits: Arc::default(),
        })
    }

    /// Opens the folder for a caller with the profile's current key. Other callers get no access.
    pub(in crate::connector) fn open_for<'a>(
        self: &'a Arc<Self>,
        caller: &'a Caller<'a>,
    ) -> Result<OpenFolder<'a>, ToolError> {
        let (adapters, gateway) = (caller.adapters, caller.account.profile.name.as_str());
        let profile = adapters
            .profiles
            .load(None)
            .and_then(|profiles| profiles.find_profile(gateway).cloned().map_err(Error::Findings));
        let profile_key = profile.and_then(|profile| read_api_key(&profile));
        let profile_key = profile_key.map_err(|error| {
            tracing::error!("cannot grant access to the campaigns: {}", describe_error(&error));
            access_denied()
        })?;
        match profile_key.expose_secret().as_bytes().ct_eq(caller.key.expose_secret().as_bytes()).into() {
            true => Ok(OpenFolder { campaigns: self, adapters, gateway }),
            false => Err(access_denied()),
        }
    }

    /// Waits until no run from this folder is being sent.
    pub(in crate::connector) fn wait_for_runs(&self) -> impl Future<Output = ()> + use<> {
        let runs = self.runs.clone();
        async move {
            runs.close();
            runs.wait().await;
        }
    }
}

/// Describes an error in one sentence.
fn describe_error(error: &Error) -> String {
    let problems = error.findings().iter().filter(|finding| finding.is_error()).map(describe_finding);
    std::iter::once(error.to_string()).chain(problems).collect::<Vec<_>>().join("; ")
}

fn access_denied() -> ToolError {
    ToolError::new("access_denied", "Access denied").with_how_to(
        "only calls with the API key of the connector's own profile can use its campaigns; ask the connector's \
         operator",
    )
}

/// The campaigns folder, for an authorized caller.
pub(in crate::connector) struct OpenFolder<'a> {
    campaigns: &'a Arc<Campaigns>,
    adapters: &'a Adapters,
    /// The name of the gateway profile that the campaigns use.
    gateway: &'a str,
}

impl OpenFolder<'_> {
    /// The campaign files in the folder.
    fn campaign_files(&self) -> Result<Vec<PathBuf>, ToolError> {
        list_campaign_files(&self.campaigns.folder).map_err(|error| {
            tracing::error!("cannot read the campaigns folder: {error}");
            ToolError::new(
                "internal",
                "cannot read the campaigns folder; the connector's operator can find the cause in the log",
            )
        })
    }

    /// Finds the campaign file that a call names. The name is compared with the folder's files and never used as a
    /// path.
    fn find_file(&self, arguments: &ToolArguments) -> Result<PathBuf, ToolError> {
        let named = arguments.text("campaign");
        let files = self.campaign_files()?;
        if let Some(file) = files.iter().find(|file| file_name(file) == named) {
            return Ok(file.clone());
        }
        let mut matching = files.into_iter().filter(|file| self.read_name(file).is_some_and(|name| name == named));
        match (matching.next(), matching.next()) {
            (Some(file), None) => Ok(file),
            (Some(_), Some(_)) => Err(ToolError::invalid_argument(
                "several files contain a campaign with this name; set `campaign` to the name of the file",
            )),
            (None, _) => Err(ToolError::invalid_argument("no campaign or file has this name")
                .with_how_to("call list_campaigns to get the names")),
        }
    }

    /// Loads the campaign of a file for a day, with findings. No file outside the folder is opened.
    fn load_in_folder(&self, file: &Path, day: CampaignDay) -> LoadedFile<Campaign> {
        load_campaign_within(file, day, self.campaigns.reach.clone())
    }

    /// Reads the name of a file's campaign, which is the same on every day; `None` if the file has errors.
    fn read_name(&self, file: &Path) -> Option<String> {
        Some(self.load_in_folder(file, CampaignDay::Coming(Date::ZERO)).value?.brief.name)
    }

    /// Loads a campaign for the connector's profile, without the campaign's notification program. With that program,
    /// anyone who can write a campaign file could start any program. A campaign that names another gateway is refused.
    async fn load_inputs(&self, file: PathBuf) -> Result<Arc<Inputs>, Error> {
        let (profiles, gateway, reach) =
            (self.adapters.profiles.clone(), self.gateway.to_owned(), self.campaigns.reach.clone());
        let day = CampaignDay::Of((self.adapters.clock)());
        run_blocking(move || {
            let inputs = Inputs::load_with_scope(&file, Some(&gateway), &profiles, day, reach)?;
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

    /// Loads a campaign to send. The campaign must not have a schedule.
    ///
    /// A list that must be fetched is refused: otherwise, anyone who can write a campaign file could start any program.
    async fn load_inputs_to_send(&self, file: PathBuf) -> Result<Arc<Inputs>, Error> {
        let inputs = self.load_inputs(file).await?;
        if inputs.list.is_unfetched() {
            return Err(Error::Input(format!(
                "the list for `{}` is {}, which is fetched only when a person runs the campaign with `{}`",
                inputs.campaign.brief.name,
                inputs.campaign.recipients,
                (self.campaigns.advice.command)("run FILE"),
            )));
        }
        match inputs.campaign.schedule {
            None => Ok(inputs),
            Some(_) => Err(Error::Input(format!(
                "the campaign `{}` has a schedule, so it runs automatically after a person activates it with `{}`",
                inputs.campaign.brief.name,
                (self.campaigns.advice.command)("schedule add FILE"),
            ))),
        }
    }

    /// Converts an error about a campaign to a tool error, with the remedy on the command line as advice.
    fn to_tool_error(&self, error: Error) -> ToolError {
        let code = match error {
            Error::Unanswered { .. } | Error::HostChanged { .. } => return error.into(),
            Error::Busy { .. } | Error::BusyRun { .. } => "busy",
            _ => "campaign_refused",
        };
        let refusal = ToolError::new(code, describe_error(&error));
        match self.describe_remedy(&error) {
            Some(remedy) => refusal.with_how_to(remedy),
            None => refusal,
        }
    }

    /// Describes the remedy for an error. Only a person can apply the remedy, on the command line.
    fn describe_remedy(&self, error: &Error) -> Option<String> {
        let remedy = (self.campaigns.advice.remedy)(error)?;
        Some(format!("tell the user what to do on the command line: {remedy}"))
    }

    /// Waits until no other call reads a whole list, and returns a permit to read a list.
    async fn acquire_list_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.campaigns.list_permit.acquire().await.ok()
    }

    /// Describes what a person must do before the plan is sent.
    fn describe_approval(&self, inputs: &Inputs, digest: &str) -> String {
        // If the profile requires signed approvals, `approve` needs the approver's key.
        let signed = inputs.destination.profile().is_some_and(|profile| profile.approval.is_some());
        let key = if signed { " --key FILE" } else { "" };
        let approve = (self.campaigns.advice.command)(&format!("approve {}{key}", short_digest(digest)));
        format!(
            "show the plan to the user. They approve it with `{approve}` in their own terminal; then call \
             run_campaign to send the campaign"
        )
    }
}

/// Describes a finding: its location, the problem, and what to do.
fn describe_finding(finding: &Finding) -> String {
    let place = finding
        .place
        .as_ref()
        .map(|place| format!("{}:{}:{}: ", file_name(place.source.path()), place.line_number(), place.column_number()));
    let help = finding.help.as_ref().map(|help| format!(" (help: {help})"));
    format!("{}{}{}", place.unwrap_or_default(), finding.message, help.unwrap_or_default())
}

/// The name of a file in its folder.
fn file_name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
