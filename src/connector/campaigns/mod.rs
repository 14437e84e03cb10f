//! The campaigns of a folder as tools, for who has the key of the connector's profile.
//!
//! - `folder`: which campaigns there are, and who may see them;
//! - a file for each tool.
//!
//! They come besides the tools of the account. Everything that they do is done by `runs`, as for the command line.

mod check_campaign;
mod folder;
mod list_campaigns;
mod plan_campaign;
mod preview_campaign;
mod run_campaign;
mod run_status;

pub(super) use folder::OpenFolder;
pub use folder::{Campaigns, SuggestedCommand};

use serde_json::{Value, json};

use super::tool::{McpTool, ToolAnnotations};
use super::tools::{object_schema, text_schema};
use crate::manifest::NOTIFY_COMMAND;
use crate::runs::Inputs;

/// The tools that send nothing, in the order in which they are listed.
pub(super) static READ_TOOLS: [McpTool; 5] =
    [list_campaigns::TOOL, check_campaign::TOOL, preview_campaign::TOOL, plan_campaign::TOOL, run_status::TOOL];
/// The tools that are there only where sending is switched on.
pub(super) static SEND_TOOLS: [McpTool; 1] = [run_campaign::TOOL];

/// What a tool does that looks at files and the ledger of this machine.
const LOCAL: ToolAnnotations = ToolAnnotations { open_world: false, ..ToolAnnotations::READING };

/// The schema of the arguments of a tool about a campaign, with these besides.
fn campaign_arguments_schema(more: Value) -> Value {
    let campaign = json!({
        "type": "string", "minLength": 1, "maxLength": 255,
        "description": "The name of a campaign or of its file, as returned by `list_campaigns`; never a path.",
    });
    let mut schema = object_schema(more, &["campaign"]);
    schema["properties"]["campaign"] = campaign;
    schema
}

/// The schema of how many rows are in each state.
fn counts_schema() -> Value {
    json!({
        "type": "object", "additionalProperties": { "type": "integer" },
        "description": "The number of rows in each state: planned, skipped, invalid, accepted, delivered, read, \
                        in_doubt and others. Each row is in one state: `delivered` excludes messages that were \
                        `read`.",
    })
}

/// The schema of a whole number.
fn number_schema(description: &str) -> Value {
    json!({ "type": "integer", "description": description })
}

/// The properties of a run that every tool tells of it.
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
        "stopped": text_schema("The code of the reason why it stopped."),
        "why": text_schema("The reason why it stopped, as a sentence."),
    })
}

/// That the connector does not start the program of a campaign's `notify`, if it names one.
fn notify_command_note(inputs: &Inputs) -> Option<&'static str> {
    inputs.campaign.places.locate_key(NOTIFY_COMMAND)?;
    Some(
        "this connector does not start `notify.command` of the campaign, so it sends no notification that way; \
         `notify.url` and `notify` in the profile's policy still work",
    )
}

/// The members of an object that are not null.
fn remove_nulls(mut object: Value) -> Value {
    if let Value::Object(members) = &mut object {
        members.retain(|_, member| !member.is_null());
    }
    object
}
