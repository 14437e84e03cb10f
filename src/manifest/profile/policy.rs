//! What a profile says for every campaign through it, which can only be stricter.

use crate::domain::ParseRegionError;
use crate::finding::{Finding, rules};
use crate::manifest::report::FindingCollector;
use crate::manifest::section::ConfigSection;
use crate::manifest::suppress_file::{SuppressionFile, read_suppression_files};
use crate::manifest::window::{self, ColumnSupport};
use crate::manifest::{CampaignPaths, SendingWindow};

/// When messages may leave, if it says so; nothing at all where it is wrong, which was told.
pub(super) fn read_window(policy: ConfigSection<'_>, report: &mut FindingCollector) -> Option<Option<SendingWindow>> {
    window::read_window(policy, ColumnSupport::Unknown, report)
}

/// The files of people who opted out, relative to gateways.yaml.
pub(super) fn read_suppress_files(
    policy: ConfigSection<'_>,
    paths: &CampaignPaths,
    report: &mut FindingCollector,
) -> Vec<SuppressionFile> {
    let region = |section: ConfigSection<'_>| {
        let (code, span) = section.typed_text("region")?;
        let refuse = |error: ParseRegionError| {
            let finding = Finding::new(&rules::UNKNOWN_REGION, format!("unknown region `{code}`"));
            report.add(span, finding.help(error.suggest_fix()));
        };
        code.parse().map_err(refuse).ok()
    };
    read_suppression_files(policy, "policy", |name, _| paths.resolve_path(name).ok(), region)
}
