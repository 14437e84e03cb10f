//! Valid and invalid scenario files.

use std::fs;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::scenario::{
    AccountSettings, Behaviour, Behaviours, Blindness, FaultEffect, OperationLimit, PartPrices, Scenario,
    ScenarioCondition, ScenarioFault, SenderStatus, WebhookFault, load_scenario,
};
use campaign_core::domain::{Amount, Channel, Endpoint, Status};
use campaign_manifest::LoadedFile;

fn load(yaml: &str) -> LoadedFile<Scenario> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("scenario.yaml");
    fs::write(&file, yaml).expect("a file");
    load_scenario(&file)
}

fn scenario(yaml: &str) -> Scenario {
    let loaded = load(yaml);
    assert_eq!(loaded.findings, [], "{yaml}");
    loaded.value.expect("a scenario")
}

fn amount(text: &str) -> Amount {
    text.parse().expect("an amount")
}

/// Rule, line and column of each finding.
fn error_positions(yaml: &str) -> Vec<(&'static str, usize, usize)> {
    let loaded = load(yaml);
    assert!(loaded.value.is_none(), "{yaml}");
    let place = |finding: &campaign_core::finding::Finding| finding.place.clone().expect("a place");
    loaded
        .findings
        .iter()
        .map(|finding| (finding.rule.id, place(finding).line_number(), place(finding).column_number()))
        .collect()
}

#[test]
fn scenario_with_empty_sections_is_the_default() {
    assert_eq!(scenario("seed: 0"), Scenario::default());
    let everything = "accounts: [{}]\nprices: {}\nchannels: { sms: {}, viber: {} }\nexceptions: []\nfaults: []\n\
                      status: {}\nwebhooks: {}\ntemplates: {}\n";
    assert_eq!(scenario(everything), Scenario::default());
}

#[test]
fn scenario_wide_settings_are_read() {
    let scenario = scenario(
        "seed: 7
speed: 60
accounts:
  - { balance: 12.5, currency: EUR, notify: \"http://127.0.0.1:9/s?x=1\", whatsapp: false }
  - { key: second, senders: { OlenaCo: Checked, Spring: New } }
limits: { rate: 600/min, burst: 0x32 }
prices: { sms: 0.55, call/otp: 1 }
charge_undelivered: false
status: { lag: 30s, blind: affirms }
webhooks: { retry: [1, 2m], async_pipeline: true, intermediate: true }
templates: { review: 1h, approved: false }
",
    );
    assert_eq!((scenario.seed, scenario.speed, scenario.charge_undelivered), (7, 60, false));
    let [first, second] = scenario.accounts.as_slice() else { panic!("two accounts") };
    assert_eq!((first.balance, first.currency.as_str(), first.whatsapp), (amount("12.5"), "EUR", false));
    assert_eq!((first.key.as_deref(), first.notify.as_deref()), (None, Some("http://127.0.0.1:9/s?x=1")));
    let senders = [("OlenaCo".to_owned(), SenderStatus::Checked), ("Spring".to_owned(), SenderStatus::New)];
    assert_eq!((second.key.as_deref(), second.senders.as_deref()), (Some("second"), Some(&senders[..])));
    assert_eq!(scenario.limit, Some(OperationLimit { rate: 10.0, burst: NonZeroU32::new(50).expect("fifty") }));
    assert_eq!(scenario.prices.for_channel(Channel::Sms), amount("0.55"));
    assert_eq!(scenario.prices.for_channel(Channel::CallOtp), amount("1"));
    assert_eq!((scenario.status_lag, scenario.status_blind), (Duration::from_secs(30), Some(Blindness::Affirms)));
    assert_eq!(scenario.webhooks.retry, [Duration::from_secs(1), Duration::from_secs(120)]);
    assert!(scenario.webhooks.async_pipeline && scenario.webhooks.intermediate);
    assert_eq!((scenario.template_review, scenario.templates_approved), (Duration::from_secs(3_600), false));
}

#[test]
fn empty_file_is_the_default_scenario() {
    for text in ["", "# nothing yet\n"] {
        assert_eq!(scenario(text), Scenario::default());
    }
}

#[test]
fn notify_address_on_another_host_causes_a_warning() {
    for (host, rules) in [("127.0.0.1:9", &[][..]), ("[::1]", &[]), ("hooks.example", &["notify-elsewhere"])] {
        let loaded = load(&format!("accounts: [{{ notify: \"http://{host}/status\" }}]"));
        assert!(loaded.value.is_some());
        assert_eq!(loaded.findings.iter().map(|finding| finding.rule.id).collect::<Vec<_>>(), rules, "{host}");
    }
}

#[test]
fn behaviours_and_exceptions_override_only_given_keys() {
    let scenario = scenario(
        "channels:
  viber: { delivered: 60%, after: 8s, read: 50%, reply: { share: 5%, message: STOP } }
  voice: { digit: 1, duration: 20s }
exceptions:
  - { when: { suffix: \"07\", share: 10%, envelope: 2-3, endpoint: async }, channel: viber, then: { delivered: 0%, fails_as: SIM FULL } }
  - { when: {}, then: { after: 1m, read: 0% } }
",
    );
    let viber = scenario.behaviours.for_channel(Channel::Viber);
    assert_eq!((viber.delivered.to_string(), viber.after), ("60%".to_owned(), Duration::from_secs(8)));
    assert_eq!(
        viber.read.map(|read| (read.share.to_string(), read.after)),
        Some(("50%".into(), Duration::from_secs(3)))
    );
    assert_eq!(viber.reply.as_ref().map(|reply| reply.after), Some(Duration::from_secs(60)));
    let voice = scenario.behaviours.for_channel(Channel::Voice);
    assert_eq!((voice.digit, voice.duration), (Some('1'), Some(Duration::from_secs(20))));
    assert_eq!(scenario.behaviours.for_channel(Channel::Sms), &Behaviour::default_for(Channel::Sms));
    let [full, slow] = scenario.exceptions.as_slice() else { panic!("two exceptions") };
    assert_eq!((full.when.suffix.as_deref(), full.when.envelope.clone()), (Some("07"), Some(2..=3)));
    assert_eq!((full.when.endpoint, full.channel), (Some(Endpoint::Async), Some(Channel::Viber)));
    let changed = full.behaviours.for_channel(Channel::Viber);
    assert_eq!((changed.fails_as.clone(), changed.after), (Status::SimFull, Duration::from_secs(8)));
    assert_eq!(slow.behaviours.for_channel(Channel::Sms).after, Duration::from_secs(60));
    assert_eq!(slow.behaviours.for_channel(Channel::Sms).read, None, "SMS does not report reading");
}

#[test]
fn every_fault_is_read() {
    for (written, effect) in [
        ("item_error: No route", FaultEffect::ItemError("No route".into())),
        ("top_error: Access denied", FaultEffect::TopError("Access denied".into())),
        ("delay: 40s", FaultEffect::Delay(Duration::from_secs(40))),
        ("connection: refused", FaultEffect::Refused(Duration::from_secs(3))),
        ("connection: refused, lasts: 1m", FaultEffect::Refused(Duration::from_secs(60))),
        ("connection: closed", FaultEffect::Closed),
        ("answer: dropped", FaultEffect::Dropped),
        ("answer: truncated", FaultEffect::Truncated),
        ("answer: reordered", FaultEffect::Reordered),
        ("answer: missing", FaultEffect::Missing),
        ("answer: foreign", FaultEffect::Foreign),
        ("http: 502", FaultEffect::Http { status: 502, retry_after: None, executed: false }),
        (
            "http: 429, retry_after: 5s, executed: true",
            FaultEffect::Http { status: 429, retry_after: Some(Duration::from_secs(5)), executed: true },
        ),
        ("webhook: twice", FaultEffect::Webhook(WebhookFault::Twice)),
        ("webhook: late, by: 1h", FaultEffect::Webhook(WebhookFault::Late(Duration::from_secs(3_600)))),
        ("webhook: reordered", FaultEffect::Webhook(WebhookFault::Reordered)),
        ("webhook: lost", FaultEffect::Webhook(WebhookFault::Lost)),
    ] {
        let scenario = scenario(&format!("faults:\n  - {{ when: {{ envelope: 3 }}, {written} }}\n"));
        let when = ScenarioCondition { envelope: Some(3..=3), ..ScenarioCondition::default() };
        assert_eq!(scenario.faults, [ScenarioFault { when, effect }], "{written}");
    }
}

#[test]
fn scenario_errors_have_positions() {
    for (yaml, expected) in [
        ("sed: 1", ("unknown-key", 1, 1)),
        ("speed: 0", ("out-of-range", 1, 8)),
        ("prices: { sms: -1 }", ("out-of-range", 1, 16)),
        ("prices: { pigeon: 1 }", ("unknown-key", 1, 11)),
        ("accounts: []", ("out-of-range", 1, 1)),
        ("accounts: [{ balance: lots }]", ("wrong-type", 1, 23)),
        ("accounts: [{ notify: nowhere }]", ("address", 1, 22)),
        ("accounts: [{ senders: { A: Maybe } }]", ("unknown-value", 1, 28)),
        ("accounts: [{ key: a }, { key: a }]", ("account-key", 1, 31)),
        ("channels: { sms: { delivered: 120% } }", ("wrong-type", 1, 31)),
        ("channels: { sms: { read: 10% } }", ("not-known", 1, 20)),
        ("channels: { viber: { digit: 1 } }", ("not-known", 1, 22)),
        ("channels: { voice: { digit: 12 } }", ("wrong-type", 1, 29)),
        ("channels: { sms: { fails_as: DELIVERED } }", ("unknown-value", 1, 30)),
        ("channels: { viber: { reply: { share: 5% } } }", ("missing-key", 1, 22)),
        ("exceptions: [{ then: {} }]", ("missing-key", 1, 16)),
        ("exceptions: [{ when: { suffix: 12a }, then: {} }]", ("wrong-type", 1, 32)),
        ("exceptions: [{ when: { envelope: 0 }, then: {} }]", ("wrong-type", 1, 34)),
        ("exceptions: [{ when: { envelope: 5-3 }, then: {} }]", ("wrong-type", 1, 34)),
        ("faults: [{ when: {} }]", ("fault-effect", 1, 10)),
        ("faults: [{ when: {}, delay: 1s, answer: dropped }]", ("fault-effect", 1, 10)),
        ("faults: [{ when: {}, delay: 1s, by: 1s }]", ("fault-effect", 1, 33)),
        ("faults: [{ when: {}, webhook: lost, by: 1s }]", ("fault-effect", 1, 37)),
        ("faults: [{ when: { suffix: 1 }, connection: closed }]", ("fault-effect", 1, 20)),
        ("faults: [{ when: { endpoint: async }, connection: refused }]", ("fault-effect", 1, 20)),
        ("faults: [{ when: {}, http: 200 }]", ("out-of-range", 1, 28)),
        ("faults: [{ when: {}, webhook: eaten }]", ("unknown-value", 1, 31)),
        ("status: { blind: partly }", ("unknown-value", 1, 18)),
    ] {
        assert_eq!(error_positions(yaml), [expected], "{yaml}");
    }
}

#[test]
fn campaign_key_is_not_suggested_in_a_scenario() {
    let loaded = load("batch: 10");
    let help = loaded.findings[0].help.as_deref().expect("help");
    assert!(help.contains("`seed`") && !help.contains("delivery"), "{help}");
}

#[test]
fn every_channel_has_its_own_price() {
    let prices = PartPrices::default();
    for channel in Channel::ALL {
        assert!(prices.for_channel(channel) > Amount::default(), "{channel}");
        let same =
            Channel::ALL.into_iter().filter(|other| prices.for_channel(*other) == prices.for_channel(channel)).count();
        assert_eq!(same, 1, "{channel}");
    }
}

#[test]
fn every_channel_has_its_own_default_behaviour() {
    let behaviours = Behaviours::default();
    for channel in Channel::ALL {
        assert_eq!(*behaviours.for_channel(channel), Behaviour::default_for(channel), "{channel}");
    }
}

#[test]
fn account_key_is_not_in_debug_output() {
    let account = AccountSettings { key: Some("s3cret".into()), ..AccountSettings::default() };
    let scenario = Scenario { accounts: vec![account], ..Scenario::default() };
    assert!(!format!("{scenario:?}").contains("s3cret"));
}

#[test]
fn limits_need_both_rate_and_burst_unless_unlimited() {
    assert_eq!(scenario("limits: { rate: unlimited, burst: 1 }"), Scenario::default());
    assert_eq!(error_positions("limits: { rate: 50/s }"), [("missing-key", 1, 1)]);
    assert_eq!(error_positions("limits: { rate: 50, burst: 0 }"), [("wrong-type", 1, 17), ("out-of-range", 1, 28)]);
    assert_eq!(
        error_positions("limits: { rates: 50/s, burst: many }"),
        [("unknown-key", 1, 11), ("wrong-type", 1, 31)],
        "the misspelt key is not reported as missing, too"
    );
}
