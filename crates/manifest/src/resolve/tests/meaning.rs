//! Tests of the campaigns that valid campaign files define.

use std::time::Duration;

use super::*;
use crate::{InDoubtPolicy, Rate};
use campaign_core::domain::{OperationKind, Stage, ViberKind};

#[test]
fn full_campaign_is_read() {
    let fixture = CampaignFixture::new();
    let campaign = fixture.load_valid(FULL);
    let brief = &campaign.brief;
    assert_eq!((brief.name.as_str(), brief.gateway.as_str()), ("autumn-sale", "production"));
    assert_eq!((brief.endpoint, brief.duplicates), (Endpoint::Async, DuplicatePolicy::Refuse));
    assert_eq!(brief.timezone.as_deref(), Some("Europe/Kyiv"));
    assert_eq!(brief.columns[1], ("first_name".into(), "Ім'я".into()));
    let vars: Vec<&str> = brief.vars.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(vars, ["Olena & Co", "0501234567", "true", "3.10"]);
    assert_eq!(brief.content.kind, OperationKind::ViberSms);
    let [Stage::Viber(viber), Stage::Sms(sms)] = brief.content.stages.as_slice() else { panic!() };
    assert_eq!((viber.kind, viber.lifetime), (ViberKind::TextImageLink, Some(3_600)));
    let message = viber.message.as_ref().unwrap();
    assert_eq!(
        (message.name.as_str(), message.source.as_str()),
        ("autumn-sale.viber.txt", "Знижки, {{ first_name }}!")
    );
    assert_eq!((sms.message.name.as_str(), sms.max_parts), ("channels[1].sms.message", 3));
    assert_eq!(serde_json::json!(sms.fields), serde_json::json!({ "unsubscribe_link": true, "note": "007" }));
    assert_eq!(campaign.recipients.list_file().unwrap().path(), fixture.folder().join("lists/autumn-sale.csv"));
    assert_eq!(campaign.results.path(), fixture.folder().join("out/sale.csv"));
    assert_eq!(campaign.delivery.rate, Some(Rate::PerSecond(10.0)));
    assert_eq!(campaign.delivery.stop_after.unreachable_timeout(true), Duration::from_secs(7_200));
    assert!(campaign.places.locate_text("autumn-sale.viber.txt", 1, 12, 10).is_some());
}

#[test]
fn every_form_of_yaml_booleans_and_numbers_is_read() {
    let fixture = CampaignFixture::new();
    for (word, truth) in [("true", true), ("True", true), ("TRUE", true), ("false", false), ("FALSE", false)] {
        let (viber, sms) =
            (format!("lifetime: 1h\n      short_link: {word}"), format!("max_parts: 0x3\n      short_link: {truth}"));
        let yaml = FULL.replace("lifetime: 1h", &viber).replace("fields: { unsubscribe_link: true, note: 007 }", &sms);
        let campaign = fixture.load_valid(&yaml.replace("batch: 20", "batch: 0o24"));
        let [Stage::Viber(viber), Stage::Sms(sms)] = campaign.brief.content.stages.as_slice() else { panic!() };
        assert_eq!((viber.short_link, sms.short_link, sms.max_parts), (Some(truth), Some(truth), 3), "{word}");
        assert_eq!(campaign.delivery.batch.get(), 20);
    }
}

#[test]
fn purpose_defaults_to_marketing_for_messages_only() {
    let fixture = CampaignFixture::new();
    let campaign = |channels: &str| format!("recipients: {{ file: a.csv }}\nchannels: [{channels}]\n");
    let sms = "sms: { signature: OlenaCo, message: Hello }";
    for (channels, key, purpose) in [
        (sms, "", Purpose::Marketing),
        ("hlr", "", Purpose::Service),
        ("call/otp", "", Purpose::Service),
        (sms, "purpose: service\n", Purpose::Service),
        ("hlr", "purpose: marketing\n", Purpose::Marketing),
    ] {
        assert_eq!(fixture.load_valid(&(campaign(channels) + key)).brief.purpose, purpose, "{channels} {key}");
    }
}

#[test]
fn missing_keys_have_their_defaults() {
    let fixture = CampaignFixture::new();
    let campaign = fixture.load_valid(&with_message("Hello"));
    assert_eq!(campaign.brief.name, "autumn-sale");
    assert!(campaign.brief.is_rehearsal());
    assert_eq!(campaign.results_file().path(), fixture.folder().join("results/autumn-sale.sandbox.csv"));
    assert_eq!(campaign.dry_results_file().path(), fixture.folder().join("results/autumn-sale.sandbox.dry-run.csv"));
    let delivery = campaign.delivery;
    assert_eq!((delivery.rate, delivery.batch.get(), delivery.in_flight.get()), (None, 50, 2));
    assert_eq!((delivery.timeout, delivery.on_in_doubt), (Duration::from_secs(30), InDoubtPolicy::Hold));
    assert_eq!(campaign.brief.max_invalid.to_string(), "10%");
    assert_eq!(delivery.stop_after.rejected.to_string(), "20%");
    let real = campaign.with_gateway("production");
    assert_eq!(real.results_file().path(), fixture.folder().join("results/autumn-sale.csv"));
}

#[test]
fn campaign_brief_round_trips_as_json() {
    let brief = CampaignFixture::new().load_valid(FULL).brief;
    let json = serde_json::to_string(&brief).unwrap();
    assert_eq!(serde_json::from_str::<CampaignBrief>(&json).unwrap(), brief);
}

#[test]
fn channel_without_keys_is_valid_in_every_yaml_form() {
    let fixture = CampaignFixture::new();
    for channel in ["- hlr", "- hlr: {}", "- hlr:", "- call/otp", "- call/otp: {}"] {
        let campaign = fixture.load_valid(&with_channels(&format!("{channel}\n")));
        assert!(campaign.brief.content.kind.is_single(), "{channel}");
    }
}

#[test]
fn operation_is_inferred_from_the_channels() {
    let sms = "- sms: { signature: Co, message: Hi }\n";
    let viber = "- viber: { signature: Co, message: Hi }\n";
    let rcs = "- rcs: { signature: Co, message: Hi, image: 'https://a.example/a.png', button: Go, link: 'https://a.example' }\n";
    let stage = "- rcs: { signature: Co, message: Hi }\n";
    let telegram = "- telegram: { message: \"{{ code }}\", lifetime: 60 }\n";
    let whatsapp = "- whatsapp: { signature: Co, message: Hi }\n";
    let voice = "- voice: { message: Hi, gender: female, language: uk-UA, name: uk-UA-Standard-A, dtmf: true }\n";
    let cases = [
        (sms.to_owned(), OperationKind::Sms),
        (viber.to_owned(), OperationKind::Viber),
        (rcs.to_owned(), OperationKind::Rcs),
        (telegram.to_owned(), OperationKind::Telegram),
        (voice.to_owned(), OperationKind::Voice),
        (format!("{viber}{sms}"), OperationKind::ViberSms),
        (format!("{rcs}{sms}"), OperationKind::RcsSms),
        (format!("{rcs}{viber}{sms}"), OperationKind::RcsViberSms),
        (format!("{sms}{viber}"), OperationKind::Pipeline),
        (format!("{stage}{viber}"), OperationKind::Pipeline),
        (whatsapp.to_owned(), OperationKind::Pipeline),
        (format!("{sms}operation: pipeline\n"), OperationKind::Pipeline),
    ];
    let fixture = CampaignFixture::new();
    for (channels, kind) in cases {
        assert_eq!(fixture.load_valid(&with_channels(&channels)).brief.content.kind, kind, "{channels}");
    }
}

#[test]
fn numeric_texts_stay_as_typed() {
    let fixture = CampaignFixture::new();
    let cases = [("12345", "12345"), ("007", "007"), ("yes", "yes"), ("1.50", "1.50"), ("|\n      a\n      b", "a\nb")];
    for (typed, text) in cases {
        let campaign = fixture.load_valid(&with_message(typed));
        let Stage::Sms(sms) = &campaign.brief.content.stages[0] else { panic!() };
        assert_eq!(sms.message.source, text);
    }
}

#[test]
fn byte_order_mark_and_crlf_do_not_change_the_meaning() {
    let fixture = CampaignFixture::new();
    let yaml = format!("\u{feff}{}", FULL.replace('\n', "\r\n"));
    assert_eq!(fixture.load_valid(&yaml).brief, fixture.load_valid(FULL).brief);
}

#[test]
fn aliases_repeat_values_within_limits() {
    let fixture = CampaignFixture::new();
    let channels = "- viber: { signature: &co OlenaCo, message: Hi }\n- sms: { signature: *co, message: Hi }\n";
    let campaign = fixture.load_valid(&with_channels(channels));
    let Stage::Sms(sms) = &campaign.brief.content.stages[1] else { panic!() };
    assert_eq!(sms.signature.source, "OlenaCo");
    let mut bomb = String::from("vars:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        bomb += &format!("  a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", "));
    }
    assert!(list_findings(&fixture.load_text(&bomb)).iter().any(|(rule, ..)| *rule == "file-too-complex"));
}

#[test]
fn separate_comment_after_sender_name_is_ignored() {
    let yaml = with_message("Sale").replace("signature: Co", "signature: Co   # registered in May");
    let campaign = CampaignFixture::new().load_valid(&yaml);
    let Stage::Sms(sms) = &campaign.brief.content.stages[0] else { panic!() };
    assert_eq!((sms.signature.source.as_str(), sms.message.source.as_str()), ("Co", "Sale"));
}

#[test]
fn schedule_is_read_and_file_names_contain_the_day() {
    let fixture = CampaignFixture::new();
    fs::write(fixture.folder().join("news-2026-12-01.txt"), "Hello").unwrap();
    let yaml = with_message("{ file: \"news-{{ today }}.txt\" }")
        .replace("file: a.csv", "file: \"daily-{{ today }}.csv\"")
        .replace("channels:", "timezone: Europe/Kyiv\nschedule: { every: day 9:30, ends: 2026-12-31, wait_for_file: 2h }\nresults: out/{{ today }}.csv\nchannels:");
    let campaign = fixture.load_valid(&yaml);
    assert_eq!(campaign.recipients.list_file().unwrap().path(), fixture.folder().join("daily-2026-12-01.csv"));
    assert_eq!(campaign.results.path(), fixture.folder().join("out/2026-12-01.csv"));
    let [Stage::Sms(sms)] = campaign.brief.content.stages.as_slice() else { panic!() };
    assert_eq!((sms.message.name.as_str(), sms.message.source.as_str()), ("news-2026-12-01.txt", "Hello"));
    let schedule = campaign.schedule.unwrap();
    assert_eq!((schedule.grace, schedule.wait_for_file), (Duration::from_secs(3600), Some(Duration::from_secs(7200))));
    assert_eq!((schedule.zone_name(), schedule.ends), ("Europe/Kyiv", Some(date(2026, 12, 31))));
    // The text file of a future day need not exist yet; on the day itself it must.
    let path = fixture.folder().join("autumn-sale.yaml");
    assert!(load_campaign(&path, CampaignDay::Coming(date(2026, 12, 2))).value.is_some());
    let missing = list_findings(&load_campaign(&path, CampaignDay::Is(date(2026, 12, 2))));
    assert!(missing.iter().any(|(rule, ..)| *rule == "text-file"), "{missing:?}");
}
