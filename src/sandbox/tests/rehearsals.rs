//! The promises about what a rehearsal shows: fallbacks, costs, and counts that add up.

use serde_json::{Value, json};

use super::bench::Bench;
use crate::domain::{Amount, Channel, Endpoint, Status};
use crate::sandbox::journal::Lines;
use crate::sandbox::platform::Message;
use crate::sandbox::scenario::{self, Behaviour, Effect, Exception, Fault, Scenario, When};

fn sms(id: u64, phone: impl Into<Value>) -> Value {
    json!({"type": "sms", "id": id, "phone": phone.into(), "sms_signature": "OlenaCo", "sms_message": "Hi"})
}

fn money(text: &str) -> Amount {
    text.parse().expect("an amount")
}

fn holding(balance: &str, scenario: Scenario) -> Scenario {
    let accounts = vec![scenario::AccountSettings { balance: money(balance), ..scenario::AccountSettings::default() }];
    Scenario { accounts, ..scenario }
}

/// A scenario in which no channel but these delivers anything.
fn only_delivered_by(channels: &[Channel]) -> Scenario {
    let mut scenario = Scenario::default();
    for channel in Channel::ALL {
        let delivered = if channels.contains(&channel) { "100%" } else { "0%" };
        let behaviour = Behaviour { delivered: delivered.parse().expect("a share"), ..Behaviour::usual(channel) };
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
fn the_dearest_stage_is_reserved_and_the_difference_returned() {
    let prices = scenario::Prices::default();
    let (viber, sms) = (prices.of(Channel::Viber), prices.of(Channel::Sms).times(2));
    for (delivered_by, charge_undelivered, spent) in [
        (&[Channel::Viber][..], true, viber),
        (&[Channel::Sms], true, sms),
        (&[], true, sms),
        (&[], false, Amount::default()),
    ] {
        let scenario = Scenario { charge_undelivered, ..only_delivered_by(delivered_by) };
        let mut bench = Bench::playing(holding("100", scenario));
        bench.one(&viber_then_sms(1));
        let funds = bench.platform.counts().funds.clone();
        assert_eq!((funds.balance, funds.reserved, funds.spent), (money("100").minus(sms), sms, Amount::default()));
        bench.wait(60_000);
        let funds = bench.platform.counts().funds.clone();
        assert_eq!((funds.balance, funds.reserved, funds.spent), (money("100").minus(spent), Amount::default(), spent));
        let amount = serde_json::to_value(funds.balance.shortest()).expect("JSON");
        assert_eq!(bench.one(&json!({"type": "balance"}))["data"]["amount"], amount);
        // What the journal says adds up to what the message cost.
        let amounts: Vec<_> = bench.events("charge").iter().filter_map(|line| line["amount"].as_f64()).collect();
        let micros: f64 = amounts.iter().map(|amount| (amount * 1e6).round()).sum();
        assert_eq!(Ok(spent), format!("{micros}e-6").parse(), "{amounts:?}");
    }
}

#[test]
fn what_cannot_be_paid_is_refused_alone_and_reserves_nothing() {
    let mut bench = Bench::playing(holding("1.65", Scenario::default()));
    let two = sms(1, "380501234567,380671234567");
    let data = json!([two, sms(2, "380501234567"), {"type": "hlr", "id": 3, "phone": 380_501_234_567_u64},
        {"type": "hlr", "id": 4, "phone": 380_501_234_567_u64}, {"type": "call/otp", "id": 5, "phone": 380_501_234_567_u64}]);
    let answer = bench.ask(Endpoint::Sync, &data)["data"].clone();
    assert_eq!(answer[0]["data"]["parts"], 2);
    for (item, id) in [(1, 2), (3, 4), (4, 5)] {
        assert_eq!(answer[item], json!({"success": false, "error": "Not enough money", "data": {"id": id}}));
    }
    // 1.65 is two SMS for 0.80 each and a lookup for 0.05.
    assert_eq!(answer[2]["success"], true);
    assert_eq!(bench.one(&json!({"type": "balance"}))["data"]["amount"], 0.0);
    let told: Vec<_> =
        bench.events("charge").iter().map(|line| (line["reason"].clone(), line["balance"].clone())).collect();
    let expected = [("reserved", 0.85), ("reserved", 0.05), ("charged", 0.0)];
    assert_eq!(told, expected.map(|(reason, balance)| (json!(reason), json!(balance))));
}

#[test]
fn a_lookup_and_a_code_call_are_charged_at_once() {
    let mut bench = Bench::new();
    let begun = bench.platform.counts().funds.balance;
    let call = bench.one(&json!({"type": "call/otp", "id": 1, "phone": 380_501_234_567_u64}));
    bench.one(&json!({"type": "hlr", "id": 2, "phone": 380_501_234_567_u64}));
    let prices = scenario::Prices::default();
    let price = serde_json::to_value(prices.of(Channel::CallOtp).shortest()).expect("JSON");
    assert_eq!(call["data"]["price"], price);
    let spent = prices.of(Channel::CallOtp).plus(prices.of(Channel::Hlr));
    bench.wait(60_000);
    let counts = bench.platform.counts();
    assert_eq!((counts.funds.spent, counts.funds.balance), (spent, begun.minus(spent)));
    assert_eq!((counts.channels[&Channel::Hlr].delivered, counts.messages), (1, 0));
}

#[test]
fn an_empty_whatsapp_message_is_taken_and_charged() {
    let mut bench = Bench::new();
    let empty = json!({"type": "pipeline", "id": 1, "phone": 380_501_234_567_u64, "pipeline": ["whatsapp"]});
    assert_eq!(bench.one(&empty)["success"], true);
    bench.wait(60_000);
    let price = scenario::Prices::default().of(Channel::Whatsapp);
    assert_eq!(bench.platform.counts().channels[&Channel::Whatsapp].spent, price);
}

#[test]
fn a_status_names_the_channel_that_is_tried() {
    let mut bench = Bench::playing(only_delivered_by(&[Channel::Sms]));
    bench.one(&viber_then_sms(1));
    for (millis, channel, word) in [
        (0, "viber", "QUEUED"),
        (999, "viber", "QUEUED"),
        (1, "viber", "ACCEPTED"),
        (1_000, "sms", "ACCEPTED"),
        (1_999, "sms", "ACCEPTED"),
        (1, "sms", "DELIVERED"),
        (1_000_000, "sms", "DELIVERED"),
    ] {
        bench.wait(millis);
        let record = bench.status(1);
        assert_eq!((&record["type"], &record["status"]), (&json!(channel), &json!(word)));
    }
    let told: Vec<_> =
        bench.events("status").iter().map(|line| (line["type"].clone(), line["status"].clone())).collect();
    let changes = [("viber", "ACCEPTED"), ("viber", "UNDELIVERABLE"), ("sms", "ACCEPTED"), ("sms", "DELIVERED")];
    assert_eq!(told, changes.map(|(channel, word)| (json!(channel), json!(word))));
    assert_eq!(bench.status(1)["updated"], "1970-01-01T00:00:04+00:00");
}

#[test]
fn time_that_runs_out_ends_every_life_in_the_order_of_time() {
    let mut bench = Bench::playing(only_delivered_by(&[Channel::Sms]));
    for id in 0..20_u64 {
        bench.one(&viber_then_sms(id));
        bench.wait(u64::from(id % 3 == 0) * 700);
    }
    assert!(bench.platform.next_due().is_some());
    let mut lines = Lines(None);
    while bench.platform.run_out(1, &mut lines) {}
    let end = bench.platform.now.timestamp();
    assert!(!bench.platform.run_out(usize::MAX, &mut lines));
    assert_eq!((bench.platform.next_due(), bench.platform.now.timestamp()), (None, end));
    let last = bench.now.as_millisecond();
    assert!(end.as_millisecond() > last - 1_000, "{end}");
    assert_eq!(bench.platform.counts().statuses, [("DELIVERED".to_owned(), 20)].into());
}

#[test]
fn the_journal_is_in_the_order_of_time() {
    let mut bench = Bench::playing(only_delivered_by(&[Channel::Sms]));
    for id in 0..20 {
        bench.one(&viber_then_sms(id));
        bench.wait(333 * id);
    }
    bench.wait(60_000);
    let times: Vec<_> = bench.journal().iter().map(|line| line["at"].as_str().expect("a time").to_owned()).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(bench.events("status").len(), 80);
}

#[test]
fn the_counts_tell_what_became_of_messages_and_money() {
    let mut bench = Bench::playing(only_delivered_by(&[Channel::Viber]));
    bench.ask(Endpoint::Async, &json!([viber_then_sms(1), sms(2, "380501234567"), sms(3, "x")]));
    let on_their_way = bench.platform.counts().statuses.clone();
    assert_eq!(on_their_way, [("REJECTED".to_owned(), 1)].into());
    bench.wait(60_000);
    let counts = bench.platform.counts();
    let words = ["READ", "REJECTED", "UNDELIVERABLE"].map(|word| (word.to_owned(), 1));
    assert_eq!(counts.statuses, words.into());
    let viber = counts.channels[&Channel::Viber];
    assert_eq!((viber.delivered, viber.read, viber.replied, viber.failed), (1, 1, 0, 0));
    let sms = counts.channels[&Channel::Sms];
    assert_eq!((sms.delivered, sms.failed), (0, 1));
    assert_eq!(counts.funds.spent, viber.spent.plus(sms.spent));
    assert_eq!(counts.funds.currency, "UAH");
}

#[test]
fn neither_order_nor_company_changes_what_becomes_of_a_number() {
    let mut scenario = Scenario { seed: 11, ..Scenario::default() };
    let half = Behaviour { delivered: "50%".parse().expect("a share"), ..Behaviour::usual(Channel::Sms) };
    scenario.behaviours.set(Channel::Sms, half);
    let numbers: Vec<u64> = (0..50).map(|n| 380_501_230_000 + n).collect();
    let fates = |order: Vec<u64>, batch: usize| {
        let mut bench = Bench::playing(scenario.clone());
        for chunk in order.chunks(batch) {
            let data: Vec<_> = chunk.iter().map(|phone| sms(*phone, *phone)).collect();
            bench.ask(Endpoint::Async, &json!(data));
            bench.wait(10);
        }
        bench.wait(60_000);
        numbers.iter().map(|phone| bench.status(*phone)["status"].clone()).collect::<Vec<_>>()
    };
    let forward = fates(numbers.clone(), 50);
    assert_eq!(forward, fates(numbers.iter().rev().copied().collect(), 3));
    assert!(forward.contains(&json!("DELIVERED")) && forward.contains(&json!("UNDELIVERABLE")));
}

#[test]
fn a_message_on_its_way_is_small_and_shares_its_plan() {
    assert!(size_of::<Message>() <= 128, "{} bytes", size_of::<Message>());
    let mut bench = Bench::new();
    let data: Vec<_> = (0..500).map(|id| sms(id, 380_501_230_000 + id)).collect();
    bench.ask(Endpoint::Async, &json!(data));
    assert_eq!((bench.platform.messages.count(), bench.platform.plans.all.len()), (500, 1));
}

#[test]
fn a_lookup_tells_at_once_what_becomes_of_it() {
    let mut scenario = Scenario { seed: 3, ..Scenario::default() };
    let delivered = "50%".parse().expect("a share");
    let half = Behaviour { delivered, fails_as: Status::SimFull, ..Behaviour::usual(Channel::Hlr) };
    scenario.behaviours.set(Channel::Hlr, half);
    let mut bench = Bench::playing(scenario);
    let lookup = |id: u64| json!({"type": "hlr", "id": id, "phone": 380_501_230_000 + id});
    let told: Vec<Value> = (0..40).map(|id| bench.one(&lookup(id))["data"]["status"].clone()).collect();
    bench.wait(60_000);
    let became: Vec<Value> = (0..40).map(|id| bench.status(id)["status"].clone()).collect();
    assert_eq!(told, became);
    assert!(told.contains(&json!("DELIVERED")) && told.contains(&json!("SIM FULL")), "{told:?}");
}

#[test]
fn shares_of_exceptions_and_of_faults_take_numbers_independently() {
    let half = || When { share: Some("50%".parse().expect("a share")), ..When::default() };
    let behaviours = only_delivered_by(&[]).behaviours;
    let scenario = Scenario {
        exceptions: vec![Exception { when: half(), channel: None, behaviours }],
        faults: vec![Fault { when: half(), effect: Effect::ItemError("No route".into()) }],
        ..Scenario::default()
    };
    let mut bench = Bench::playing(scenario);
    let data: Vec<_> = (0..1_000).map(|id| sms(id, 380_501_230_000 + id)).collect();
    bench.ask(Endpoint::Sync, &json!(data));
    bench.wait(60_000);
    let statuses = &bench.platform.counts().statuses;
    let count = |word: &str| statuses.get(word).copied().unwrap_or_default();
    for word in ["DELIVERED", "UNDELIVERABLE"] {
        assert!((190..310).contains(&count(word)), "{statuses:?}");
    }
}

#[test]
fn a_code_call_to_some_numbers_can_be_refused_at_the_top() {
    let when = When { suffix: Some("67".into()), ..When::default() };
    let faults = vec![Fault { when, effect: Effect::TopError("Operator not supported".into()) }];
    let mut bench = Bench::playing(Scenario { faults, ..Scenario::default() });
    let call = |phone: u64| json!([{"type": "call/otp", "id": 1, "phone": phone}]);
    let refused = bench.ask(Endpoint::Sync, &call(380_501_234_567));
    assert_eq!(refused, json!({"success": false, "error": "Operator not supported"}));
    assert_eq!(bench.ask(Endpoint::Sync, &call(380_501_234_568))["data"][0]["success"], true);
}
