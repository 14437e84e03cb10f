//! Rules about a campaign and its gateway profile: limits, endpoints, webhooks, prices and notices.

use crate::check::online::MessagePrices;
use campaign_content::message::{Notice, render_notice};
use campaign_core::domain::{Endpoint, OperationKind};
use campaign_core::finding::{Finding, Rule, RuleText, join_alternatives, quote_for_shell, rules};
use campaign_manifest::{Campaign, Profile, Rate, ReceiptMode};

pub(super) static BATCH_LIMIT: Rule = Rule::error(
    "batch-limit",
    RuleText {
        cause: "A request has more messages than allowed. The gateway rejects requests larger than the profile's \
                `batch_limit`.",
        example: &["delivery: { batch: 500 }                    # the profile allows 100"],
        fix: "lower `delivery.batch` to the limit shown in the finding",
    },
);

pub(super) fn check_batch_limit(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let (batch, limit) = (campaign.delivery.batch, profile.batch_limit);
    let place = campaign.places.locate_key("delivery.batch").filter(|_| batch > limit)?;
    let message = format!("`batch` is {batch}, but the profile `{}` allows at most {limit}", profile.name);
    Some(Finding::new(&BATCH_LIMIT, message).help(format!("set `batch` to {limit} or less")).at(place))
}

pub(super) static RATE_LIMIT: Rule = Rule::error(
    "rate-limit",
    RuleText {
        cause: "The campaign's rate exceeds the profile's. The gateway rejects messages sent faster than the \
                account's rate limit.",
        example: &["delivery: { rate: 500/s }                   # the profile allows 100/s"],
        fix: "lower `delivery.rate` to the rate shown in the finding",
    },
);

pub(super) fn check_rate_limit(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let (requested, allowed) = (campaign.delivery.rate?, profile.rate);
    let finding = if requested == Rate::Unlimited && !profile.is_loopback() {
        Finding::new(&rules::UNLIMITED_RATE, "`rate: unlimited` is allowed only for a gateway on this machine")
    } else if requested > allowed {
        Finding::new(&RATE_LIMIT, format!("`rate` is {requested}, but the profile `{}` allows {allowed}", profile.name))
    } else {
        return None;
    };
    let place = campaign.places.locate_key("delivery.rate")?;
    Some(finding.help(format!("set `rate` to `{allowed}` or less")).at(place))
}

pub(super) static MANDATORY_FORBIDDEN: Rule = Rule::error(
    "mandatory-forbidden",
    RuleText {
        cause: "The profile forbids mandatory messages. Its `policy` requires every message to respect opt-outs.",
        example: &[
            "purpose: service",
            "mandatory: true",
            "gateways.yaml: production: { policy: { mandatory: never } }",
        ],
        fix: "remove `mandatory: true` from the campaign, or `mandatory: never` from the profile",
    },
);

pub(super) fn check_mandatory(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    if !campaign.brief.mandatory || !profile.forbids_mandatory {
        return None;
    }
    let message = format!("the profile `{}` forbids messages that ignore opt-outs", profile.name);
    let help = "remove `mandatory`; recipients who opted out of all messages are then skipped";
    Some(Finding::new(&MANDATORY_FORBIDDEN, message).help(help).at(campaign.places.locate_key("mandatory")))
}

pub(super) static MISSING_ENDPOINT: Rule = Rule::error(
    "missing-endpoint",
    RuleText {
        cause: "The profile has no asynchronous endpoint. `endpoint: async` needs a separate address.",
        example: &["endpoint: async                             # the profile has no `async_url`"],
        fix: "add `async_url` to the profile, or write `endpoint: sync`",
    },
);

pub(super) fn check_endpoint(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let missing = campaign.brief.endpoint == Endpoint::Async && profile.async_url.is_none();
    let place = campaign.places.locate_key("endpoint").filter(|_| missing)?;
    let finding = Finding::new(&MISSING_ENDPOINT, format!("the profile `{}` has no `async_url`", profile.name));
    let name = &profile.name;
    let help = format!("write `endpoint: sync`, or add `async_url: https://…` to `{name}` in gateways.yaml");
    Some(finding.help(help).at(place))
}

pub(super) static MISSING_HOOK: Rule = Rule::error(
    "missing-hook",
    RuleText {
        cause: "The profile has no webhook endpoint. With `receipts: webhook`, the gateway needs an address for \
                delivery receipts.",
        example: &["receipts: webhook                           # the profile has no `hook`"],
        fix: "add `hook` to the profile, or write `receipts: poll`",
    },
);

pub(super) fn check_webhook_address(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    if campaign.receipts != ReceiptMode::Webhook || profile.hook.is_some() {
        return None;
    }
    let message = format!("`receipts: webhook` needs a `hook`, which the profile `{}` does not have", profile.name);
    Some(
        Finding::new(&MISSING_HOOK, message)
            .help("add `hook` to the profile, or write `receipts: poll`")
            .at(campaign.places.locate_key("receipts")?),
    )
}

pub(super) static MISSING_PRICE: Rule = Rule::error(
    "missing-price",
    RuleText {
        cause: "The profile has no price for a channel. Without prices, a cost limit cannot be \
                applied.",
        example: &["limits: { cost: 5000 }                      # the profile has no `prices`"],
        fix: "add `prices` for the campaign's channels to the profile; if you remove `limits.cost`, the cost of a run \
              is no longer limited",
    },
);

pub(super) fn check_prices(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    campaign.limits.cost?;
    let missing = MessagePrices::for_campaign(profile, &campaign.brief).err()?;
    let channels = join_alternatives(missing.iter().map(|channel| channel.name()));
    let message = format!("`limits.cost` needs a price for {channels}, but the profile `{}` has none", profile.name);
    let help = format!("add `prices: {{ {}: … }}` to the profile", missing.first()?.name());
    Some(Finding::new(&MISSING_PRICE, message).help(help).at(campaign.places.locate_key("limits.cost")?))
}

pub(super) static NOTIFY_TEXT: Rule = Rule::error(
    "notify-text",
    RuleText {
        cause: "A notification template is not valid. The notification would fail when it is needed.",
        example: &["notify: { command: [notify-send, \"{{ sumary }}\"] }"],
        fix: "use only the names `text`, `occasion`, `campaign`, `run`, `gateway`, `rows`, `counts`, `why`, \
              `results`, `at` and `count`",
    },
);

/// The first text of `notify` that cannot be rendered.
#[must_use]
pub fn check_campaign_notices(campaign: &Campaign) -> Option<Finding> {
    let way = &campaign.notify.as_ref()?.method;
    let wrong = way.templates().find_map(|text| render_notice(text, &Notice::sample(), 1).err())?;
    let place = ["notify.body", "notify.command"].into_iter().find_map(|key| campaign.places.locate_key(key));
    let finding = Finding::new(&NOTIFY_TEXT, format!("the `notify` template cannot be rendered: {wrong}"));
    Some(match place {
        Some(place) => finding.at(place),
        None => finding,
    })
}

/// The first text of a profile's `policy.notify` that cannot be rendered.
pub(super) fn check_profile_notices(_: &Campaign, profile: &Profile) -> Option<Finding> {
    let way = &profile.notify.as_ref()?.method;
    let wrong = way.templates().find_map(|text| render_notice(text, &Notice::sample(), 1).err())?;
    let name = &profile.name;
    Some(Finding::new(
        &NOTIFY_TEXT,
        format!("the `policy.notify` template in the profile `{name}` cannot be rendered: {wrong}"),
    ))
}

pub(super) static WHATSAPP_ROUTE: Rule = Rule::note(
    "whatsapp-route",
    RuleText {
        cause: "WhatsApp must be enabled for the account. Otherwise, the gateway rejects all messages with `No route`, even if they have other channels.",
        example: &["channels: [{ whatsapp: { signature: OlenaCo, message: Hi } }]"],
        fix: "ask your account manager whether WhatsApp is enabled, and try `run --limit 1` first",
    },
);

/// A note if a channel of the campaign must first be enabled for the account.
pub(super) fn note_whatsapp_route(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let stages = campaign.brief.all_contents().flat_map(|content| content.stages.iter().enumerate());
    let mut channels = stages.map(|(index, stage)| (index, stage.channel()));
    let (index, channel) = channels.find(|(_, channel)| channel.facts().enabled_by_hand && !profile.is_loopback())?;
    let (title, name) = (channel.facts().title, &profile.name);
    let message = format!(
        "{title} must be enabled for the account in the profile `{name}`; otherwise, the gateway rejects all \
         messages that use it"
    );
    let place = campaign.places.locate_key(&format!("channels[{index}].{channel}"));
    let help = "ask your account manager whether this channel is enabled, and try `run --limit 1` first";
    Some(Finding::new(&WHATSAPP_ROUTE, message).help(help).at(place))
}

pub(super) static PROMISED_RECEIPTS: Rule = Rule::note(
    "promised-receipts",
    RuleText {
        cause: "Some webhooks might not arrive. The gateway guarantees webhooks only for some types of message.",
        example: &["channels: [{ sms: { … } }]                  # no webhooks are guaranteed for `sms`"],
        fix: "no change is needed: `serve` and `reconcile --all` request missing delivery statuses",
    },
);

/// How missing delivery statuses arrive.
const STATUS_REQUESTS: &str = "`serve` and `reconcile --all` request missing delivery statuses";

/// Notes about promised delivery receipts, one per message type, if the profile has a webhook address.
#[must_use]
pub fn check_promised_receipts(campaign: &Campaign, profile: &Profile) -> Vec<Finding> {
    if profile.hook.is_none() || !campaign.receipts.uses_webhooks() {
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
                "in the account settings at the gateway, enter the address that `gateway hook {}` prints; \
                 {STATUS_REQUESTS}",
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
    let finding = Finding::new(&PROMISED_RECEIPTS, message).at(place);
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
    use campaign_manifest::{CampaignDay, GatewaySearch, load_campaign, load_gateways};

    const GATEWAYS: &str = "\
promised: { base_url: https://g.example, async_url: https://g.example, api_key: { env: KEY }, rate: 1/s,
        hook: { public_url: https://h.example, secret: { env: SECRET } } }
polled: { base_url: https://g.example, api_key: { env: KEY }, rate: 1/s }
";

    #[test]
    fn webhook_guarantee_is_noted_for_each_message_type() {
        let sms = "sms: { signature: Olena, message: Hi }";
        let viber = "viber: { signature: Olena, message: Hi }";
        let rcs = "rcs: { signature: Olena, message: Hi, image: https://a.example/a.png, button: Go, link: https://a.example }";
        let (voice, asynchronous) = ("voice: { message: Hi }", "endpoint: async\n");
        let each = "a webhook for each";
        let cases: [(&str, &[&str], &str, Option<&str>); 12] = [
            ("", &[viber], "promised", Some(each)),
            (asynchronous, &[viber], "promised", Some(each)),
            ("", &[rcs], "promised", Some(each)),
            ("", &[rcs, sms], "promised", Some(each)),
            ("", &[rcs, viber, sms], "promised", Some(each)),
            ("", &[sms], "promised", Some("guarantee webhooks for `sms`")),
            ("", &[viber, sms], "promised", Some("guarantee webhooks for `viber+sms`")),
            ("", &[voice, sms], "promised", Some("account settings")),
            (asynchronous, &[voice, sms], "promised", Some("rejects the message on receipt")),
            ("", &["hlr"], "promised", None),
            ("receipts: poll\n", &[viber], "promised", None),
            ("", &[viber], "polled", None),
        ];
        let folder = TempDir::new().unwrap();
        let (file, profiles) = (folder.path().join("a.yaml"), folder.path().join("gateways.yaml"));
        fs::write(&profiles, GATEWAYS).unwrap();
        let search = GatewaySearch { explicit: Some(profiles), ..GatewaySearch::default() };
        let gateways = load_gateways(&search).value.unwrap();
        for (top, channels, profile, expected) in cases {
            let channels: String = channels.iter().map(|channel| format!("  - {channel}\n")).collect();
            fs::write(&file, format!("{top}recipients: {{ file: a.csv }}\nchannels:\n{channels}")).unwrap();
            let loaded = load_campaign(&file, CampaignDay::Of(jiff::Timestamp::now()));
            let campaign = loaded.value.unwrap_or_else(|| panic!("{:?}", loaded.findings));
            let findings = check_promised_receipts(&campaign, gateways.find_profile(profile).unwrap());
            match (expected, findings.first().map(|finding| finding.message.as_str())) {
                (Some(expected), Some(message)) => assert!(message.contains(expected), "{top}{channels}: {message}"),
                (expected, message) => assert_eq!(expected, message, "{top}{channels}"),
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
        let findings = check_promised_receipts(&campaign, gateways.find_profile("promised").unwrap());
        let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
        let each = "the gateway sends a webhook for each `viber` message";
        assert_eq!(messages, [each, "the gateway does not guarantee webhooks for `sms` messages"]);
    }
}
