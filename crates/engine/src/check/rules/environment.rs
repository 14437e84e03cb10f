//! Rules about what a campaign depends on: its gateway profile, the gateway account, and the ledger.
//!
//! The rules about the profile cover limits, endpoints, webhooks, prices and notices.

use crate::check::online::{AccountTerms, MessagePrices, Signature};
use campaign_content::message::{Notice, render_notice};
use campaign_core::define_rules;
use campaign_core::domain::{Amount, Channel, Endpoint, OperationKind};
use campaign_core::finding::{Finding, did_you_mean, join_alternatives, quote_for_shell, rules};
use campaign_gateway::{Balance, InquiryFailure, SenderName};
use campaign_manifest::{Campaign, Profile, Rate, ReceiptMode};

define_rules! {
    CAMPAIGN:
    warning UNCONFIRMED_REPLICA = "unconfirmed-replica" {
        cause: "A replica does not confirm the ledger's commits. After a failover, it might not know which recipients \
                already got a message.",
        example: ["the ledger is in PostgreSQL with one asynchronous replica"],
        fix: "list the replicas in `synchronous_standby_names`, so that one of them confirms each commit",
    }
    warning UNFAMILIAR_LEDGER = "unfamiliar-ledger" {
        cause: "This machine has never used this ledger. If the database was restored from an old copy, recipients \
                could get messages again.",
        example: ["`campaign run` on a new computer, with a shared ledger that other computers have used"],
        fix: "compare the latest run in `campaign status` with the last one you know of; if runs are missing, see \"A \
              snapshot of the database\" in docs/shared-ledger.md",
    }
    error BATCH_LIMIT = "batch-limit" {
        cause: "A request has more messages than allowed. The gateway rejects requests larger than the profile's \
                `batch_limit`.",
        example: ["delivery: { batch: 500 }                    # the profile allows 100"],
        fix: "lower `delivery.batch` to the limit shown in the finding",
    }
    error RATE_LIMIT = "rate-limit" {
        cause: "The campaign's rate exceeds the profile's. The gateway rejects messages sent faster than the account's \
                rate limit.",
        example: ["delivery: { rate: 500/s }                   # the profile allows 100/s"],
        fix: "lower `delivery.rate` to the rate shown in the finding",
    }
    error MANDATORY_FORBIDDEN = "mandatory-forbidden" {
        cause: "The profile forbids mandatory messages. Its `policy` requires every message to respect opt-outs.",
        example: [
            "purpose: service",
            "mandatory: true",
            "gateways.yaml: production: { policy: { mandatory: never } }",
        ],
        fix: "remove `mandatory: true` from the campaign, or `mandatory: never` from the profile",
    }
    error MISSING_ENDPOINT = "missing-endpoint" {
        cause: "The profile has no asynchronous endpoint. `endpoint: async` needs a separate address.",
        example: ["endpoint: async                             # the profile has no `async_url`"],
        fix: "add `async_url` to the profile, or write `endpoint: sync`",
    }
    error MISSING_HOOK = "missing-hook" {
        cause: "The profile has no webhook endpoint. With `receipts: webhook`, the gateway needs an address for \
                delivery receipts.",
        example: ["receipts: webhook                           # the profile has no `hook`"],
        fix: "add `hook` to the profile, or write `receipts: poll`",
    }
    error MISSING_PRICE = "missing-price" {
        cause: "The profile has no price for a channel. Without prices, a cost limit cannot be applied.",
        example: ["limits: { cost: 5000 }                      # the profile has no `prices`"],
        fix: "add `prices` for the campaign's channels to the profile; if you remove `limits.cost`, the cost of a run \
              is no longer limited",
    }
    error NOTIFY_TEXT = "notify-text" {
        cause: "A notification template is not valid. The notification would fail when it is needed.",
        example: ["notify: { command: [notify-send, \"{{ sumary }}\"] }"],
        fix: "use only the names `text`, `occasion`, `campaign`, `run`, `gateway`, `rows`, `counts`, `why`, `results`, \
              `at` and `count`",
    }
    note WHATSAPP_ROUTE = "whatsapp-route" {
        cause: "WhatsApp must be enabled for the account. Otherwise, the gateway rejects all messages with `No route`, \
                even if they have other channels.",
        example: ["channels: [{ whatsapp: { signature: OlenaCo, message: Hi } }]"],
        fix: "ask your account manager whether WhatsApp is enabled, and try `run --limit 1` first",
    }
    note PROMISED_RECEIPTS = "promised-receipts" {
        cause: "Some webhooks might not arrive. The gateway guarantees webhooks only for some types of message.",
        example: ["channels: [{ sms: { … } }]                  # no webhooks are guaranteed for `sms`"],
        fix: "no change is needed: `serve` and `reconcile --all` request missing delivery statuses",
    }
}

define_rules! {
    ACCOUNT:
    error BALANCE_TOO_LOW = "balance-too-low" {
        cause: "The account balance might be too low. If it runs out, the run stops before all messages are sent.",
        example: ["the balance is 120.00 UAH, and the messages can cost up to 200.00 UAH"],
        fix: "top up the account, or send to fewer recipients with `run --limit N`",
    }
    pub error KEY_REFUSED = "key-refused" {
        cause: "The gateway rejects the API key. No messages can be sent.",
        example: [
            "gateways.yaml: production: { api_key: { env: CAMPAIGN_API_KEY } }     # the key is no longer valid",
        ],
        fix: "check the key that the profile names under `api_key`",
    }
    pub warning ONLINE_UNKNOWN = "online-unknown" {
        cause: "The gateway did not return the account data. Runs are not affected.",
        example: ["`check --online` cannot reach the gateway"],
        fix: "check again later, or select the right profile with `--gateway NAME`",
    }
    pub error SENDER_UNKNOWN = "sender-unknown" {
        cause: "The account cannot use this sender name. The gateway rejects messages sent under unknown or unverified \
                names.",
        example: ["channels: [{ sms: { signature: OlenaKo, message: Hi } }]     # the account has OlenaCo"],
        fix: "use a name listed by `gateway senders`, or have the name verified",
    }
}

/// A finding if the balance is lower than the maximum cost.
pub(in crate::check) fn check_balance(balance: &Balance, cost: Amount) -> Option<Finding> {
    let Balance { amount, currency } = balance;
    if *amount >= cost {
        return None;
    }
    let missing = cost.saturating_sub(*amount);
    let format_amount = |amount: Amount| format!("{amount} {currency}").trim_end().to_owned();
    let (amount, cost, missing) = (format_amount(*amount), format_amount(cost), format_amount(missing));
    let message = format!("the balance is {amount}, but the messages can cost up to {cost}, which is {missing} more");
    Some(
        Finding::new(&BALANCE_TOO_LOW, message)
            .help("top up the account, or send to fewer recipients with `run --limit N`"),
    )
}

/// An error that the gateway rejected the API key, with the reason.
pub(in crate::check) fn key_rejected_finding(reason: String, key: &str) -> Finding {
    Finding::new(&KEY_REFUSED, reason).help(format!("check {key}; the profile reads the API key from there"))
}

/// A warning that account data is unknown, with the reason.
pub(in crate::check) fn unknown_account_data_finding(
    subject: &str,
    failure: &InquiryFailure,
    account: AccountTerms<'_>,
) -> Finding {
    let finding = Finding::new(&ONLINE_UNKNOWN, format!("{subject} unknown: {}", failure.reason));
    finding.help(format!(
        "run `{}` and `{}` to try again; missing account data does not stop a run",
        account.balance, account.senders
    ))
}

/// The gateway's status for unverified sender names. The contract does not limit the set of statuses (2.5).
const UNVERIFIED: &str = "New";

/// A finding if a signature is not among the account's verified sender names.
pub(in crate::check) fn check_sender_name(
    signature: &Signature,
    senders: &[&SenderName],
    account: AccountTerms<'_>,
) -> Option<Finding> {
    // An account without sender names might not need any, so an empty list proves nothing.
    if senders.is_empty() {
        return None;
    }
    let Signature { channel, name, place } = signature;
    // The list might contain only SMS sender names, so it proves nothing about other channels.
    let create_finding = |message: String| match channel {
        Channel::Sms => Finding::new(&SENDER_UNKNOWN, message),
        _ => Finding::new(&SENDER_UNKNOWN, message).into_warning(),
    };
    let known = || senders.iter().map(|sender| sender.name.as_str());
    let finding = match senders.iter().find(|sender| sender.name == *name).map(|sender| sender.status.as_str()) {
        Some(status) if account.verified.iter().any(|word| word.eq_ignore_ascii_case(status)) => return None,
        Some(status) if status.eq_ignore_ascii_case(UNVERIFIED) => create_finding(format!(
            "the sender name `{name}` is not verified yet: its status is `{status}`"
        ))
        .help(format!("wait until the gateway has verified it, or use another name listed by `{}`", account.senders)),
        Some(status) => Finding::new(
            &SENDER_UNKNOWN,
            format!("the sender name `{name}` has the status `{status}`, which might mean that it cannot be used"),
        )
        .into_warning()
        .help("ask the gateway's support team what this status means"),
        None => {
            create_finding(format!("the account has no sender name `{name}`")).help(match did_you_mean(name, known()) {
                Some(suggestion) if suggestion.eq_ignore_ascii_case(name) => {
                    format!("did you mean `{suggestion}`? names are case-sensitive")
                }
                Some(suggestion) => format!("did you mean `{suggestion}`?"),
                None => format!("run `{}` to list the account's sender names", account.senders),
            })
        }
    };
    Some(finding.at(place.clone()))
}

/// A warning that some replicas do not confirm commits, so they might lack committed data. `None` if `replicas` is 0.
pub fn check_replicas(replicas: u64) -> Option<Finding> {
    let replicas = match replicas {
        0 => return None,
        1 => "a replica that does not".to_owned(),
        more => format!("{more} replicas that do not"),
    };
    let finding =
        Finding::new(&UNCONFIRMED_REPLICA, format!("the ledger's database has {replicas} confirm its commits"));
    Some(finding.help("list the replicas in the database setting `synchronous_standby_names`"))
}

/// A warning about a ledger that this machine has never used, with the number of live runs and the latest run.
pub fn unfamiliar_ledger_finding(place: &str, runs: u64, latest: &str) -> Finding {
    let runs = if runs == 1 {
        "a live run from another machine".to_owned()
    } else {
        format!("{runs} live runs from other machines")
    };
    let message = format!(
        "this machine has never used the ledger {}, which contains {runs}; the most recent is {latest}",
        quote_for_shell(place)
    );
    Finding::new(&UNFAMILIAR_LEDGER, message).help(
        "check in `campaign status` that no later run is missing: if the database was restored from a snapshot, \
         recipients could get messages again",
    )
}

pub(super) fn check_batch_limit(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let (batch, limit) = (campaign.delivery.batch, profile.batch_limit);
    if batch <= limit {
        return None;
    }
    let place = campaign.places.locate_key("delivery.batch")?;
    let message = format!("`batch` is {batch}, but the profile `{}` allows at most {limit}", profile.name);
    Some(Finding::new(&BATCH_LIMIT, message).help(format!("set `batch` to {limit} or less")).at(place))
}

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

pub(super) fn check_mandatory(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    if !campaign.brief.mandatory || !profile.forbids_mandatory {
        return None;
    }
    let message = format!("the profile `{}` forbids messages that ignore opt-outs", profile.name);
    let help = "remove `mandatory`; recipients who opted out of all messages are then skipped";
    Some(Finding::new(&MANDATORY_FORBIDDEN, message).help(help).at(campaign.places.locate_key("mandatory")))
}

pub(super) fn check_endpoint(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let is_missing = campaign.brief.endpoint == Endpoint::Async && profile.async_url.is_none();
    let place = campaign.places.locate_key("endpoint").filter(|_| is_missing)?;
    let finding = Finding::new(&MISSING_ENDPOINT, format!("the profile `{}` has no `async_url`", profile.name));
    let name = &profile.name;
    let help = format!("write `endpoint: sync`, or add `async_url: https://…` to `{name}` in gateways.yaml");
    Some(finding.help(help).at(place))
}

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

pub(super) fn check_prices(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    campaign.limits.cost?;
    let missing = MessagePrices::for_campaign(profile, &campaign.brief).err()?;
    let channels = join_alternatives(missing.iter().map(|channel| channel.name()));
    let message = format!("`limits.cost` needs a price for {channels}, but the profile `{}` has none", profile.name);
    let help = format!("add `prices: {{ {}: … }}` to the profile", missing.first()?.name());
    Some(Finding::new(&MISSING_PRICE, message).help(help).at(campaign.places.locate_key("limits.cost")?))
}

/// A finding about the first `notify` template of a campaign that cannot be rendered.
pub fn check_campaign_notices(campaign: &Campaign) -> Option<Finding> {
    let method = &campaign.notify.as_ref()?.method;
    let error = method.templates().find_map(|text| render_notice(text, &Notice::sample(), 1).err())?;
    let place = ["notify.body", "notify.command"].into_iter().find_map(|key| campaign.places.locate_key(key));
    let finding = Finding::new(&NOTIFY_TEXT, format!("the `notify` template cannot be rendered: {error}"));
    Some(match place {
        Some(place) => finding.at(place),
        None => finding,
    })
}

/// A finding about the first `policy.notify` template of a profile that cannot be rendered.
pub(super) fn check_profile_notices(_: &Campaign, profile: &Profile) -> Option<Finding> {
    let method = &profile.notify.as_ref()?.method;
    let error = method.templates().find_map(|text| render_notice(text, &Notice::sample(), 1).err())?;
    let name = &profile.name;
    Some(Finding::new(
        &NOTIFY_TEXT,
        format!("the `policy.notify` template in the profile `{name}` cannot be rendered: {error}"),
    ))
}

/// A note if a channel of the campaign must first be enabled for the account.
pub(super) fn note_manually_enabled_channel(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
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

/// Advice on how to obtain missing delivery statuses.
const STATUS_REQUESTS: &str = "`serve` and `reconcile --all` request missing delivery statuses";

/// Notes on whether the gateway guarantees delivery receipts, one per message type, if the profile has a webhook
/// address.
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
    kinds.into_iter().map(|kind| receipt_note(campaign, profile, kind)).collect()
}

fn receipt_note(campaign: &Campaign, profile: &Profile, kind: OperationKind) -> Finding {
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
    fn webhook_note_depends_on_the_message_type() {
        let sms = "sms: { signature: Olena, message: Hi }";
        let viber = "viber: { signature: Olena, message: Hi }";
        let rcs = "rcs: { signature: Olena, message: Hi, image: https://a.example/a.png, button: Go, link: https://a.example }";
        let (voice, asynchronous) = ("voice: { message: Hi }", "endpoint: async\n");
        let webhook_note = "a webhook for each";
        let cases: [(&str, &[&str], &str, Option<&str>); 12] = [
            ("", &[viber], "promised", Some(webhook_note)),
            (asynchronous, &[viber], "promised", Some(webhook_note)),
            ("", &[rcs], "promised", Some(webhook_note)),
            ("", &[rcs, sms], "promised", Some(webhook_note)),
            ("", &[rcs, viber, sms], "promised", Some(webhook_note)),
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
        let webhook_note = "the gateway sends a webhook for each `viber` message";
        assert_eq!(messages, [webhook_note, "the gateway does not guarantee webhooks for `sms` messages"]);
    }
}
