//! What a profile says for every campaign through it, which can only be stricter.

use crate::domain::ParseRegionError;
use crate::finding::{Finding, rules};
use crate::manifest::report::Report;
use crate::manifest::section::Section;
use crate::manifest::suppress_file::{SuppressFile, suppress_files};
use crate::manifest::window::{self, Columns};
use crate::manifest::{CampaignPaths, SendingWindow};

/// When messages may leave, if it says so; nothing at all where it is wrong, which was told.
pub(super) fn window(policy: Section<'_>, report: &mut Report) -> Option<Option<SendingWindow>> {
    window::window(policy, Columns::Unknown, report)
}

/// The files of people who opted out, relative to gateways.yaml.
pub(super) fn suppress(policy: Section<'_>, paths: &CampaignPaths, report: &mut Report) -> Vec<SuppressFile> {
    let region = |section: Section<'_>| {
        let (code, span) = section.typed("region")?;
        let refuse = |error: ParseRegionError| {
            let finding = Finding::new(&rules::UNKNOWN_REGION, format!("unknown region `{code}`"));
            report.at(span, finding.help(error.advice()));
        };
        code.parse().map_err(refuse).ok()
    };
    suppress_files(policy, "policy", |name, _| paths.resolve(name).ok(), region)
}
