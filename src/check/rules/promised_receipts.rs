//! For which messages the gateway promises webhooks, and what becomes of the others (contract 6.3 to 6.5).

use crate::domain::{Endpoint, OperationKind};
use crate::finding::{Finding, Rule, RuleText, quote_for_shell};
use crate::manifest::{Campaign, Profile};

pub(super) static RULE: Rule = Rule::note(
    "promised-receipts",
    RuleText {
        cause: "The gateway does not guarantee every webhook. Only some types of message have guaranteed webhooks.",
        example: &["channels: [{ sms: { … } }]                  # no webhooks are guaranteed for `sms`"],
        fix: "no change is needed: `serve` and `reconcile --all` request missing delivery statuses",
    },
);

/// How missing delivery statuses become known.
const STATUS_REQUESTS: &str = "`serve` and `reconcile --all` request missing delivery statuses";

/// How what becomes of the messages of a campaign is heard, whose profile has an address for webhooks; of each type once.
#[must_use]
pub fn check_promised_receipts(campaign: &Campaign, profile: &Profile) -> Vec<Finding> {
    if profile.hook.is_none() || !campaign.receipts.takes_webhooks() {
        return Vec::new();
    }
    let mut kinds: Vec<OperationKind> = Vec::new();
    for arm in campaign.brief.list_arms() {
        if !arm.content.kind.is_single() && !kinds.contains(&arm.content.kind) {
            kinds.push(arm.content.kind);
        }
    }
    kinds.into_iter().map(|kind| kind_finding(campaign, profile, kind)).collect()
}

fn kind_finding(campaign: &Campaign, profile: &Profile, kind: OperationKind) -> Finding {
    let (message, help) = match campaign.brief.endpoint {
        _ if kind.promises_webhooks() => (format!("the gateway sends a webhook for each `{kind}` message"), None),
        _ if kind != OperationKind::Pipeline => (
            format!("the gateway does not guarantee webhooks for `{kind}` messages"),
            Some(format!("some webhooks might still arrive; {STATUS_REQUESTS}")),
        ),
        Endpoint::Sync => (
            "for synchronous `pipeline` messages, the gateway sends webhooks only to the address in the account \
                settings"
                .to_owned(),
            Some(format!(
                "enter the address from `gateway hook {}` in the gateway's settings; {STATUS_REQUESTS}",
                quote_for_shell(&profile.name)
            )),
        ),
        Endpoint::Async => (
            "for an asynchronous `pipeline` message, the gateway sends a webhook only if it rejects the message on receipt"
                .to_owned(),
            Some(STATUS_REQUESTS.to_owned()),
        ),
    };
    let place = ["receipts", "channels"].into_iter().find_map(|key| campaign.places.locate_key(key));
    let finding = Finding::new(&RULE, message).at(place);
    match help {
        Some(help) => finding.help(help),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::manifest::{CampaignDay, GatewaySearch, load_campaign, load_gateways};

    const GATEWAYS: &str = "\
told: { base_url: https://g.example, async_url: https://g.example, api_key: { env: KEY }, rate: 1/s,
        hook: { public_url: https://h.example, secret: { env: SECRET } } }
asked: { base_url: https://g.example, api_key: { env: KEY }, rate: 1/s }
";

    #[test]
    fn promised_receipts_are_noted_for_each_message_type() {
        let sms = "sms: { signature: Olena, message: Hi }";
        let viber = "viber: { signature: Olena, message: Hi }";
        let rcs = "rcs: { signature: Olena, message: Hi, image: https://a.example/a.png, button: Go, link: https://a.example }";
        let (voice, asynchronous) = ("voice: { message: Hi }", "endpoint: async\n");
        let each = "a webhook for each";
        let cases: [(&str, &[&str], &str, Option<&str>); 12] = [
            ("", &[viber], "told", Some(each)),
            (asynchronous, &[viber], "told", Some(each)),
            ("", &[rcs], "told", Some(each)),
            ("", &[rcs, sms], "told", Some(each)),
            ("", &[rcs, viber, sms], "told", Some(each)),
            ("", &[sms], "told", Some("guarantee webhooks for `sms`")),
            ("", &[viber, sms], "told", Some("guarantee webhooks for `viber+sms`")),
            ("", &[voice, sms], "told", Some("account settings")),
            (asynchronous, &[voice, sms], "told", Some("rejects the message on receipt")),
            ("", &["hlr"], "told", None),
            ("receipts: poll\n", &[viber], "told", None),
            ("", &[viber], "asked", None),
        ];
        let folder = TempDir::new().unwrap();
        let (file, profiles) = (folder.path().join("a.yaml"), folder.path().join("gateways.yaml"));
        fs::write(&profiles, GATEWAYS).unwrap();
        let search = GatewaySearch { explicit: Some(profiles), ..GatewaySearch::default() };
        let gateways = load_gateways(&search).value.unwrap();
        for (top, channels, profile, said) in cases {
            let channels: String = channels.iter().map(|channel| format!("  - {channel}\n")).collect();
            fs::write(&file, format!("{top}recipients: {{ file: a.csv }}\nchannels:\n{channels}")).unwrap();
            let loaded = load_campaign(&file, CampaignDay::Of(jiff::Timestamp::now()));
            let campaign = loaded.value.unwrap_or_else(|| panic!("{:?}", loaded.findings));
            let told = check_promised_receipts(&campaign, gateways.find_profile(profile).unwrap());
            match (said, told.first().map(|told| told.message.as_str())) {
                (Some(said), Some(message)) => assert!(message.contains(said), "{top}{channels}: {message}"),
                (said, message) => assert_eq!(said, message, "{top}{channels}"),
            }
        }
    }

    #[test]
    fn variants_are_noted_once_per_message_type() {
        let folder = TempDir::new().unwrap();
        let (file, profiles) = (folder.path().join("a.yaml"), folder.path().join("gateways.yaml"));
        fs::write(&profiles, GATEWAYS).unwrap();
        let search = GatewaySearch { explicit: Some(profiles), ..GatewaySearch::default() };
        let gateways = load_gateways(&search).value.unwrap();
        let viber = "channels: [{ viber: { signature: Olena, message: Hi } }]";
        let variants =
            format!("variants: {{ a: {{ share: 50%, {viber} }}, b: {{ share: 25% }}, c: {{ share: 25% }} }}");
        let sms = "channels: [{ sms: { signature: Olena, message: Hi } }]";
        fs::write(&file, format!("recipients: {{ file: a.csv }}\n{sms}\n{variants}\n")).unwrap();
        let loaded = load_campaign(&file, CampaignDay::Of(jiff::Timestamp::now()));
        let campaign = loaded.value.unwrap_or_else(|| panic!("{:?}", loaded.findings));
        let told = check_promised_receipts(&campaign, gateways.find_profile("told").unwrap());
        let said: Vec<&str> = told.iter().map(|finding| finding.message.as_str()).collect();
        let each = "the gateway sends a webhook for each `viber` message";
        assert_eq!(said, [each, "the gateway does not guarantee webhooks for `sms` messages"]);
    }
}
