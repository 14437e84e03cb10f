//! Whose approval a large run needs.

use crate::domain::{ApproverKey, ParseApproverKeyError};
use crate::finding::{Finding, rules};
use crate::manifest::report::FindingCollector;
use crate::manifest::section::ConfigSection;

/// Whose approval a run through a gateway needs, and from how many recipients on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRule {
    /// More recipients than this need it.
    pub above: u32,
    /// Who can give it, each with the public half of a key.
    pub by: Vec<(String, ApproverKey)>,
}

/// Whose approval a large run needs; a key that cannot be read is somebody who could never approve.
pub(super) fn read_approval(section: ConfigSection<'_>, report: &mut FindingCollector) -> Option<ApprovalRule> {
    let above = section.parse_value("above")?;
    let by = section.entry("by")?;
    let mut keys = Vec::new();
    let people = by.value.as_entries()?;
    for person in people {
        let text = person.value.as_scalar()?.text.trim();
        match text.parse() {
            Ok(key) => keys.push((person.key.clone(), key)),
            Err(ParseApproverKeyError) => {
                let message = match text.starts_with("ed25519-private:") {
                    true => format!("the value of `{}` is a private key, which only its owner should have", person.key),
                    false => format!("the value of `{}` is not a public key", person.key),
                };
                let help = "write `ed25519:` and the 43 characters that `approve --new-key NAME` prints after it";
                report.add(&person.value.span, Finding::new(&rules::APPROVER_KEY, message).help(help));
            }
        }
    }
    if people.is_empty() {
        let finding = Finding::new(&rules::APPROVER_KEY, "`by` lists no approvers, so no run can be approved");
        report.add(
            &by.key_span,
            finding.help("create a key with `approve --new-key NAME` and add the line that it prints"),
        );
    }
    Some(ApprovalRule { above, by: keys })
}
