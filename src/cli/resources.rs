//! The programs, addresses and sources of a campaign as a person reads them before they agree.

use crate::manifest::{InDoubtPolicy, NOTIFY_COMMAND, Resource};

/// A line for each resource of a campaign, and one for its policy for rows in doubt unless they stay in doubt.
pub(super) fn describe_resources(resources: &[Resource], on_in_doubt: InDoubtPolicy) -> String {
    let lines = resources.iter().map(|resource| format!("    {}\n", describe_resource(resource)));
    let mut text = format!("  uses:\n{}", lines.collect::<String>());
    if on_in_doubt != InDoubtPolicy::Hold {
        text += &format!("  rows in doubt: {}\n", on_in_doubt.name());
    }
    text
}

/// A resource with its kind and its key.
pub(super) fn describe_resource(resource: &Resource) -> String {
    let Resource { key, shown, .. } = resource;
    let note = if key == NOTIFY_COMMAND { " (not started if an assistant runs the campaign)" } else { "" };
    format!("{} `{key}`: {shown}{note}", resource.resource_kind().kind_name())
}
