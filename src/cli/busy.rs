//! Words for a campaign that another process has.

use jiff::Timestamp;

use super::suggested::Options;
use crate::delivery::SingleKind;

/// Why a campaign is not sent now.
pub(super) fn sending(campaign: &str, gateway: &str, since: Option<Timestamp>, options: &Options) -> String {
    let (status, stop) = (options.command(format!("status {campaign}")), options.command(format!("stop {campaign}")));
    let since = words(since);
    format!("another process is sending `{campaign}` through `{gateway}`{since}; see `{status}`, or `{stop}`")
}

/// Why nothing of its runs can be asked or decided about now. Of lookups and code calls nobody stops another's.
pub(super) fn held(campaign: &str, gateway: &str, since: Option<Timestamp>, options: &Options) -> String {
    let since = words(since);
    if SingleKind::named(campaign).is_some() {
        return format!("another process asks or decides about `{campaign}`{since}; wait for its end");
    }
    let stop = options.command(format!("stop {campaign}"));
    format!("another process is sending `{campaign}` through `{gateway}`{since}; wait for its end, or `{stop}`")
}

fn words(since: Option<Timestamp>) -> String {
    since.map(|since| format!(" since {since:.0}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_decides_about_lookups_is_waited_for_and_cannot_be_stopped() {
        let told = |campaign| held(campaign, "main", None, &Options::default());
        assert_eq!(told("gateway.lookup"), "another process asks or decides about `gateway.lookup`; wait for its end");
        assert!(told("sale").ends_with("wait for its end, or `campaign stop sale`"), "{}", told("sale"));
    }
}
