//! Results of rehearsals: fallbacks, costs, and counts that add up.

use std::time::Duration;

use serde_json::{Value, json};

use super::bench::Bench;
use crate::journal::JournalLines;
use crate::platform::SandboxMessage;
use crate::scenario::{
    self, Behaviour, Exception, FaultEffect, ReadBehaviour, ReplyBehaviour, Scenario, ScenarioCondition, ScenarioFault,
};
use campaign_core::domain::{Amount, Channel, Endpoint, Status};
use campaign_manifest::Percentage;

fn sms(id: u64, phone: impl Into<Value>) -> Value {
    json!({"type": "sms", "id": id, "phone": phone.into(), "sms_signature": "OlenaCo", "sms_message": "Hi"})
}

fn money(text: &str) -> Amount {
    text.parse().expect("an amount")
}

fn with_balance(balance: &str, scenario: Scenario) -> Scenario {
    let accounts = vec![scenario::AccountSettings { balance: money(balance), ..scenario::AccountSettings::default() }];
    Scenario { accounts, ..scenario }
}

/// A scenario in which only these channels deliver messages.
fn only_delivered_by(channels: &[Channel]) -> Scenario {
    let mut scenario = Scenario::default();
    for channel in Channel::ALL {
        let delivered = if channels.contains(&channel) { "100%" } else { "0%" };
        let behaviour = Behaviour { delivered: delivered.parse().expect("a share"), ..Behaviour::default_for(channel) };
        scenario.behaviours.set(channel, behaviour);
    }
    scenario
}

/// Viber with a fallback to an SMS of two parts.
fn viber_then_sms(id: u64) -> Value {
    json!({"type": "viber+sms", "id": id, "phone": 380_501_234_567_u64, "viber_type": "text", "viber_signature": "OlenaCo",
        "viber_message": "Hi", "sms_signature": "OlenaCo", "sms_message": "я".repeat(71)})
}

#[test]
fn highest_stage_price_is_reserved_and_the_excess_is_refunded() {
    let prices = scenario::PartPrices::default();
    let (viber, sms) = (prices.for_channel(Channel::Viber), prices.for_channel(Channel::Sms).saturating_mul(2));
    for (delivered_by, charge_undelivered, spent) in [
        (&[Channel::Viber][..], true, viber),
        (&[Channel::Sms], true, sms),
        (&[], true, sms),
        (&[], false, Amount::default()),
    ] {
        let scenario = Scenario { charge_undelivered, ..only_delivered_by(delivered_by) };
        let mut bench = Bench::with_scenario(with_balance("100", scenario));
        bench.send_one(&viber_then_sms(1));
        let funds = bench.platform.counts().funds.clone();
        assert_eq!(
            (funds.balance, funds.reserved, funds.spent),
            (money("100").saturating_sub(sms), sms, Amount::default())
        );
        bench.advance_millis(60_000);
        let funds = bench.platform.counts().funds.clone();
        assert_eq!(
            (funds.balance, funds.reserved, funds.spent),
            (money("100").saturating_sub(spent), Amount::default(), spent)
        );
        let amount = serde_json::to_value(funds.balance.trim_decimals()).expect("JSON");
        assert_eq!(bench.send_one(&json!({"type": "balance"}))["data"]["amount"], amount);
        // The amounts in the journal add up to the cost of the message.
        let amounts: Vec<_> =
            bench.journal_events("charge").iter().filter_map(|line| line["amount"].as_f64()).collect();
        let micros: f64 = amounts.iter().map(|amount| (amount * 1e6).round()).sum();
        assert_eq!(Ok(spent), format!("{micros}e-6").parse(), "{amounts:?}");
    }
}

#[test]
fn unaffordable_operation_reserves_nothing() {
    let mut bench = Bench::with_scenario(with_balance("1.65", Scenario::default()));
    let two = sms(1, "380501234567,380671234567");
    let data = json!([two, sms(2, "380501234567"), {"type": "hlr", "id": 3, "phone": 380_501_234_567_u64},
        {"type": "hlr", "id": 4, "phone": 380_501_234_567_u64}, {"type": "call/otp", "id": 5, "phone": 380_501_234_567_u64}]);
    let answer = bench.send(Endpoint::Sync, &data)["data"].clone();
    assert_eq!(answer[0]["data"]["parts"], 2);
    for (item, id) in [(1, 2), (3, 4), (4, 5)] {
        assert_eq!(answer[item], json!({"success": false, "error": "Not enough money", "data": {"id": id}}));
    }
    // 1.65 is the price of two SMS at 0.80 each, and of a lookup at 0.05.
    assert_eq!(answer[2]["success"], true);
    assert_eq!(bench.send_one(&json!({"type": "balance"}))["data"]["amount"], 0.0);
    let reported: Vec<_> =
        bench.journal_events("charge").iter().map(|line| (line["reason"].clone(), line["balance"].clone())).collect();
    let expected = [("reserved", 0.85), ("reserved", 0.05), ("charged", 0.0)];
    assert_eq!(reported, expected.map(|(reason, balance)| (json!(reason), json!(balance))));
}

#[test]
fn lookup_and_code_call_are_charged_at_once() {
    let mut bench = Bench::new();
    let initial_balance = bench.platform.counts().funds.balance;
    let call = bench.send_one(&json!({"type": "call/otp", "id": 1, "phone": 380_501_234_567_u64}));
    bench.send_one(&json!({"type": "hlr", "id": 2, "phone": 380_501_234_567_u64}));
    let prices = scenario::PartPrices::default();
    let price = serde_json::to_value(prices.for_channel(Channel::CallOtp).trim_decimals()).expect("JSON");
    assert_eq!(call["data"]["price"], price);
    let spent = prices.for_channel(Channel::CallOtp).saturating_add(prices.for_channel(Channel::Hlr));
    bench.advance_millis(60_000);
    let counts = bench.platform.counts();
    assert_eq!((counts.funds.spent, counts.funds.balance), (spent, initial_balance.saturating_sub(spent)));
    assert_eq!((counts.channels[&Channel::Hlr].delivered, counts.messages), (1, 0));
}

#[test]
fn empty_whatsapp_message_is_accepted_and_charged() {
    let mut bench = Bench::new();
    let empty = json!({"type": "pipeline", "id": 1, "phone": 380_501_234_567_u64, "pipeline": ["whatsapp"]});
    assert_eq!(bench.send_one(&empty)["success"], true);
    bench.advance_millis(60_000);
    let price = scenario::PartPrices::default().for_channel(Channel::Whatsapp);
    assert_eq!(bench.platform.counts().channels[&Channel::Whatsapp].spent, price);
}

#[test]
fn status_names_the_current_channel() {
    let mut bench = Bench::with_scenario(only_delivered_by(&[Channel::Sms]));
    bench.send_one(&viber_then_sms(1));
    for (millis, channel, word) in [
        (0, "viber", "QUEUED"),
        (999, "viber", "QUEUED"),
        (1, "viber", "ACCEPTED"),
        (1_000, "sms", "ACCEPTED"),
        (1_999, "sms", "ACCEPTED"),
        (1, "sms", "DELIVERED"),
        (1_000_000, "sms", "DELIVERED"),
    ] {
        bench.advance_millis(millis);
        let record = bench.status(1);
        assert_eq!((&record["type"], &record["status"]), (&json!(channel), &json!(word)));
    }
    let reported: Vec<_> =
        bench.journal_events("status").iter().map(|line| (line["type"].clone(), line["status"].clone())).collect();
    let changes = [("viber", "ACCEPTED"), ("viber", "UNDELIVERABLE"), ("sms", "ACCEPTED"), ("sms", "DELIVERED")];
    assert_eq!(reported, changes.map(|(channel, word)| (json!(channel), json!(word))));
    assert_eq!(bench.status(1)["updated"], "1970-01-01T00:00:04+00:00");
}

#[test]
fn drain_finishes_all_lifecycles_and_advances_the_clock() {
    let mut bench = Bench::with_scenario(only_delivered_by(&[Channel::Sms]));
    for id in 0..20_u64 {
        bench.send_one(&viber_then_sms(id));
        bench.advance_millis(u64::from(id % 3 == 0) * 700);
    }
    assert!(bench.platform.next_due().is_some());
    let mut lines = JournalLines(None);
    while bench.platform.drain(1, &mut lines) {}
    let end = bench.platform.now.to_timestamp();
    assert!(!bench.platform.drain(usize::MAX, &mut lines));
    assert_eq!((bench.platform.next_due(), bench.platform.now.to_timestamp()), (None, end));
    let last = bench.now.as_millisecond();
    assert!(end.as_millisecond() > last - 1_000, "{end}");
    assert_eq!(bench.platform.counts().statuses, [("DELIVERED".to_owned(), 20)].into());
}

#[test]
fn journal_is_in_chronological_order() {
    let mut bench = Bench::with_scenario(only_delivered_by(&[Channel::Sms]));
    for id in 0..20 {
        bench.send_one(&viber_then_sms(id));
        bench.advance_millis(333 * id);
    }
    bench.advance_millis(60_000);
    let times: Vec<_> =
        bench.journal_lines().iter().map(|line| line["at"].as_str().expect("a time").to_owned()).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(bench.journal_events("status").len(), 80);
}

#[test]
fn counts_include_delivery_results_and_spending() {
    let mut bench = Bench::with_scenario(only_delivered_by(&[Channel::Viber]));
    bench.send(Endpoint::Async, &json!([viber_then_sms(1), sms(2, "380501234567"), sms(3, "x")]));
    let before = bench.platform.counts().statuses.clone();
    assert_eq!(before, [("REJECTED".to_owned(), 1)].into());
    bench.advance_millis(60_000);
    let counts = bench.platform.counts();
    let words = ["READ", "REJECTED", "UNDELIVERABLE"].map(|word| (word.to_owned(), 1));
    assert_eq!(counts.statuses, words.into());
    let viber = counts.channels[&Channel::Viber];
    assert_eq!((viber.delivered, viber.read, viber.replied, viber.failed), (1, 1, 0, 0));
    let sms = counts.channels[&Channel::Sms];
    assert_eq!((sms.delivered, sms.failed), (0, 1));
    assert_eq!(counts.funds.spent, viber.spent.saturating_add(sms.spent));
    assert_eq!(counts.funds.currency, "UAH");
}

#[test]
fn replied_message_counts_as_read_once() {
    for (read, sent) in [("0%", 1), ("100%", 2)] {
        let mut scenario = only_delivered_by(&[Channel::Viber]);
        let reply =
            Some(ReplyBehaviour { share: Percentage::WHOLE, after: Duration::from_secs(1), message: "Так".into() });
        let mut behaviour = Behaviour { reply, ..Behaviour::default_for(Channel::Viber) };
        behaviour.read =
            behaviour.read.map(|reading| ReadBehaviour { share: read.parse().expect("a share"), ..reading });
        scenario.behaviours.set(Channel::Viber, behaviour);
        let mut bench = Bench::with_scenario(scenario);
        (1..=sent).for_each(|id| drop(bench.send_one(&viber_then_sms(id))));
        bench.advance_millis(60_000);
        let viber = bench.platform.counts().channels[&Channel::Viber];
        assert_eq!((viber.delivered, viber.read, viber.replied), (sent, sent, sent), "read by {read}");
    }
}

#[test]
fn result_for_a_number_does_not_depend_on_sending_order() {
    let mut scenario = Scenario { seed: 11, ..Scenario::default() };
    let half = Behaviour { delivered: "50%".parse().expect("a share"), ..Behaviour::default_for(Channel::Sms) };
    scenario.behaviours.set(Channel::Sms, half);
    let numbers: Vec<u64> = (0..50).map(|n| 380_501_230_000 + n).collect();
    let final_statuses = |order: Vec<u64>, batch: usize| {
        let mut bench = Bench::with_scenario(scenario.clone());
        for chunk in order.chunks(batch) {
            let data: Vec<_> = chunk.iter().map(|phone| sms(*phone, *phone)).collect();
            bench.send(Endpoint::Async, &json!(data));
            bench.advance_millis(10);
        }
        bench.advance_millis(60_000);
        numbers.iter().map(|phone| bench.status(*phone)["status"].clone()).collect::<Vec<_>>()
    };
    let forward = final_statuses(numbers.clone(), 50);
    assert_eq!(forward, final_statuses(numbers.iter().rev().copied().collect(), 3));
    assert!(forward.contains(&json!("DELIVERED")) && forward.contains(&json!("UNDELIVERABLE")));
}

#[test]
fn stored_message_is_small_and_shares_its_plan() {
    assert!(size_of::<SandboxMessage>() <= 128, "{} bytes", size_of::<SandboxMessage>());
    let mut bench = Bench::new();
    let data: Vec<_> = (0..500).map(|id| sms(id, 380_501_230_000 + id)).collect();
    bench.send(Endpoint::Async, &json!(data));
    assert_eq!((bench.platform.messages.len(), bench.platform.plans.all.len()), (500, 1));
}

#[test]
fn lookup_answers_with_its_final_status() {
    let mut scenario = Scenario { seed: 3, ..Scenario::default() };
    let delivered = "50%".parse().expect("a share");
    let half = Behaviour { delivered, fails_as: Status::SimFull, ..Behaviour::default_for(Channel::Hlr) };
    scenario.behaviours.set(Channel::Hlr, half);
    let mut bench = Bench::with_scenario(scenario);
    let lookup = |id: u64| json!({"type": "hlr", "id": id, "phone": 380_501_230_000 + id});
    let reported: Vec<Value> = (0..40).map(|id| bench.send_one(&lookup(id))["data"]["status"].clone()).collect();
    bench.advance_millis(60_000);
    let expected: Vec<Value> = (0..40).map(|id| bench.status(id)["status"].clone()).collect();
    assert_eq!(reported, expected);
    assert!(reported.contains(&json!("DELIVERED")) && reported.contains(&json!("SIM FULL")), "{reported:?}");
}

#[test]
fn exception_and_fault_shares_are_independent() {
    let half = || ScenarioCondition { share: Some("50%".parse().expect("a share")), ..ScenarioCondition::default() };
    let behaviours = only_delivered_by(&[]).behaviours;
    let scenario = Scenario {
        exceptions: vec![Exception { when: half(), channel: None, behaviours }],
        faults: vec![ScenarioFault { when: half(), effect: FaultEffect::ItemError("No route".into()) }],
        ..Scenario::default()
    };
    let mut bench = Bench::with_scenario(scenario);
    let data: Vec<_> = (0..1_000).map(|id| sms(id, 380_501_230_000 + id)).collect();
    bench.send(Endpoint::Sync, &json!(data));
    bench.advance_millis(60_000);
    let statuses = &bench.platform.counts().statuses;
    let count = |word: &str| statuses.get(word).copied().unwrap_or_default();
    for word in ["DELIVERED", "UNDELIVERABLE"] {
        assert!((190..310).contains(&count(word)), "{statuses:?}");
    }
}

#[test]
fn code_call_to_some_numbers_can_get_a_top_level_error() {
    let when = ScenarioCondition { suffix: Some("67".into()), ..ScenarioCondition::default() };
    let faults = vec![ScenarioFault { when, effect: FaultEffect::TopError("Operator not supported".into()) }];
    let mut bench = Bench::with_scenario(Scenario { faults, ..Scenario::default() });
    let call = |phone: u64| json!([{"type": "call/otp", "id": 1, "phone": phone}]);
    let rejection = bench.send(Endpoint::Sync, &call(380_501_234_567));
    assert_eq!(rejection, json!({"success": false, "error": "Operator not supported"}));
    assert_eq!(bench.send(Endpoint::Sync, &call(380_501_234_568))["data"][0]["success"], true);
}
