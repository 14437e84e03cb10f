//! The programs, addresses and sources of a campaign as a person reads them before they agree.

use crate::manifest::{NOTIFY_COMMAND, OnInDoubt, Resource};

/// A line for each resource of a campaign, and one for its policy for rows in doubt unless they stay in doubt.
pub(super) fn lines(resources: &[Resource], on_in_doubt: OnInDoubt) -> String {
    let lines = resources.iter().map(|resource| format!("    {}\n", line(resource)));
    let mut text = format!("  uses:\n{}", lines.collect::<String>());
    if on_in_doubt != OnInDoubt::Hold {
        text += &format!("  rows in doubt: {}\n", on_in_doubt.name());
    }
    text
}

/// A resource with its kind and its key.
pub(super) fn line(resource: &Resource) -> String {
    let Resource { key, shown, .. } = resource;
    let note = if key == NOTIFY_COMMAND { " (not started if an assistant runs the campaign)" } else { "" };
    format!("{} `{key}`: {shown}{note}", resource.kind().word())
}
