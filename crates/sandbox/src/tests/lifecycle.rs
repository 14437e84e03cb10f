//! Lifecycles of messages: states, times and channels.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use crate::platform::{ChannelStage, LifecycleState, MessageLifecycle, Phase, VirtualTime};
use crate::scenario::{
    Behaviour, Behaviours, Exception, MessageFacts, ReadBehaviour, ReplyBehaviour, Scenario, ScenarioCondition,
};
use campaign_core::domain::{Channel, Endpoint, Phone, Status};
use campaign_manifest::Percentage;

const INTAKE: Timestamp = Timestamp::UNIX_EPOCH;

fn share(percent: u32) -> Percentage {
    format!("{percent}%").parse().expect("a share")
}

fn stage(channel: Channel) -> ChannelStage {
    ChannelStage::new(channel, 1, None)
}

/// Every state of a message: its channel, status, and milliseconds since its arrival.
fn simulate_lifecycle(scenario: &Scenario, stages: &[ChannelStage], phone: u64) -> Vec<(Channel, String, i64)> {
    let facts = MessageFacts { phone: Phone::new(phone).expect("a phone"), envelope: 1, endpoint: Endpoint::Sync };
    let intake = VirtualTime::from_timestamp(INTAKE);
    let life = MessageLifecycle { scenario, facts, stages, intake };
    let states =
        std::iter::successors(Some(LifecycleState::at_intake(Phase::Queued, intake)), |state| life.next_state(*state));
    let steps = states.map(|state| {
        let millis = state.since.to_timestamp().as_millisecond();
        (stages[usize::from(state.stage)].channel, state.phase.status_name(scenario).to_owned(), millis)
    });
    steps.take(100).collect()
}

fn undelivered(channel: Channel) -> Behaviour {
    Behaviour { delivered: share(0), ..Behaviour::default_for(channel) }
}

#[test]
fn message_is_queued_accepted_delivered_and_read() {
    let scenario = Scenario::default();
    let sms = |word: &str, millis| (Channel::Sms, word.to_owned(), millis);
    let expected = [sms("QUEUED", 0), sms("ACCEPTED", 1_000), sms("DELIVERED", 2_000)];
    assert_eq!(simulate_lifecycle(&scenario, &[stage(Channel::Sms)], 380_501_234_567), expected);
    let viber = |word: &str, millis| (Channel::Viber, word.to_owned(), millis);
    let expected = [viber("QUEUED", 0), viber("ACCEPTED", 1_000), viber("DELIVERED", 2_000), viber("READ", 5_000)];
    assert_eq!(simulate_lifecycle(&scenario, &[stage(Channel::Viber)], 380_501_234_567), expected);
}

#[test]
fn fallback_tries_channels_in_order() {
    let mut scenario = Scenario::default();
    scenario.behaviours.set(Channel::Rcs, Behaviour { after: Duration::from_secs(10), ..undelivered(Channel::Rcs) });
    scenario
        .behaviours
        .set(Channel::Viber, Behaviour { after: Duration::from_secs(20), ..undelivered(Channel::Viber) });
    let stages = [Channel::Rcs, Channel::Viber, Channel::Sms].map(stage);
    let lifecycle = simulate_lifecycle(&scenario, &stages, 380_501_234_567);
    let expected = [
        (Channel::Rcs, "QUEUED".to_owned(), 0),
        (Channel::Rcs, "ACCEPTED".to_owned(), 5_000),
        (Channel::Viber, "ACCEPTED".to_owned(), 10_000),
        (Channel::Sms, "ACCEPTED".to_owned(), 30_000),
        (Channel::Sms, "DELIVERED".to_owned(), 32_000),
    ];
    assert_eq!(lifecycle, expected);
}

#[test]
fn last_stage_determines_the_failure_status() {
    let mut scenario = Scenario::default();
    for (channel, fails_as) in [(Channel::Viber, Status::Filtered), (Channel::Sms, Status::Other("PAUSED".into()))] {
        scenario.behaviours.set(channel, Behaviour { fails_as, ..undelivered(channel) });
    }
    let lifecycle = simulate_lifecycle(&scenario, &[Channel::Viber, Channel::Sms].map(stage), 380_501_234_567);
    assert_eq!(lifecycle.last(), Some(&(Channel::Sms, "PAUSED".to_owned(), 4_000)));
}

#[test]
fn message_expires_exactly_at_its_lifetime() {
    let mut scenario = Scenario::default();
    scenario
        .behaviours
        .set(Channel::Viber, Behaviour { after: Duration::from_secs(60), ..Behaviour::default_for(Channel::Viber) });
    for (lifetime, word, millis) in [(Some(59), "EXPIRED", 59_000), (Some(60), "READ", 63_000), (None, "READ", 63_000)]
    {
        let lifecycle =
            simulate_lifecycle(&scenario, &[ChannelStage::new(Channel::Viber, 1, lifetime)], 380_501_234_567);
        assert_eq!(lifecycle.last(), Some(&(Channel::Viber, word.to_owned(), millis)), "{lifetime:?}");
    }
    // With a fallback, the failure of one channel starts the next.
    let lifecycle = simulate_lifecycle(
        &scenario,
        &[ChannelStage::new(Channel::Viber, 1, Some(30)), stage(Channel::Sms)],
        380_501_234_567,
    );
    assert_eq!(lifecycle.last(), Some(&(Channel::Sms, "DELIVERED".to_owned(), 32_000)));
}

#[test]
fn reply_follows_read_or_delivery() {
    let mut scenario = Scenario::default();
    let reply = Some(ReplyBehaviour { share: Percentage::WHOLE, after: Duration::from_secs(7), message: "Yes".into() });
    for (read, words, end) in [
        (
            Some(ReadBehaviour { share: share(100), after: Duration::from_secs(3) }),
            vec!["DELIVERED", "READ", "REPLIED"],
            12_000,
        ),
        (Some(ReadBehaviour { share: share(0), after: Duration::from_secs(3) }), vec!["DELIVERED", "REPLIED"], 9_000),
        (None, vec!["DELIVERED", "REPLIED"], 9_000),
    ] {
        let behaviour = Behaviour { read, reply: reply.clone(), ..Behaviour::default_for(Channel::Viber) };
        scenario.behaviours.set(Channel::Viber, behaviour);
        let lifecycle = simulate_lifecycle(&scenario, &[stage(Channel::Viber)], 380_501_234_567);
        assert_eq!(lifecycle[2..].iter().map(|(_, word, _)| word.as_str()).collect::<Vec<_>>(), words);
        assert_eq!(lifecycle.last().map(|(_, _, millis)| *millis), Some(end));
    }
}

#[test]
fn first_matching_exception_replaces_the_behaviour() {
    let suffix = |suffix: &str| ScenarioCondition { suffix: Some(suffix.into()), ..ScenarioCondition::default() };
    let failing = |when, channel, fails_as: Status| {
        let mut behaviours = Behaviours::default();
        for failing_channel in Channel::ALL {
            let behaviour = Behaviour { fails_as: fails_as.clone(), ..undelivered(failing_channel) };
            behaviours.set(failing_channel, behaviour);
        }
        Exception { when, channel, behaviours }
    };
    let scenario = Scenario {
        exceptions: vec![
            failing(suffix("11"), Some(Channel::Viber), Status::Filtered),
            failing(suffix("11"), None, Status::SimFull),
            failing(suffix("1"), None, Status::NoRoute),
        ],
        ..Scenario::default()
    };
    for (channel, phone, word) in [
        (Channel::Sms, 380_500_000_011, "SIM FULL"),
        (Channel::Viber, 380_500_000_011, "FILTERED"),
        (Channel::Sms, 380_500_000_021, "NO ROUTE"),
        (Channel::Sms, 380_500_000_022, "DELIVERED"),
    ] {
        let lifecycle = simulate_lifecycle(&scenario, &[stage(channel)], phone);
        assert_eq!(lifecycle.last().map(|(_, word, _)| word.as_str()), Some(word), "{channel} {phone}");
    }
}

#[test]
fn delivery_is_drawn_per_channel() {
    let mut scenario = Scenario { seed: 3, ..Scenario::default() };
    for channel in [Channel::Viber, Channel::Sms] {
        scenario
            .behaviours
            .set(channel, Behaviour { delivered: share(50), read: None, ..Behaviour::default_for(channel) });
    }
    let stages = [Channel::Viber, Channel::Sms].map(stage);
    let last_states = (0..4_000).filter_map(|n| simulate_lifecycle(&scenario, &stages, 380_500_000_000 + n).pop());
    let (mut viber, mut sms, mut failed) = (0, 0, 0);
    for (channel, word, _) in last_states {
        match (channel, word.as_str()) {
            (Channel::Viber, "DELIVERED") => viber += 1,
            (Channel::Sms, "DELIVERED") => sms += 1,
            _ => failed += 1,
        }
    }
    assert!((1_850..2_150).contains(&viber), "{viber}");
    assert!((850..1_150).contains(&sms) && (850..1_150).contains(&failed), "{sms} {failed}");
}

fn any_behaviour() -> impl Strategy<Value = Behaviour> {
    let seconds = || (0_u64..400_000).prop_map(Duration::from_secs);
    let read = prop::option::of((0_u32..=100, seconds()));
    let reply = prop::option::of((0_u32..=100, seconds()));
    (0_u32..=100, seconds(), read, reply).prop_map(|(delivered, after, read, reply)| Behaviour {
        delivered: share(delivered),
        after,
        fails_as: Status::Undeliverable,
        read: read.map(|(part, after)| ReadBehaviour { share: share(part), after }),
        reply: reply.map(|(part, after)| ReplyBehaviour { share: share(part), after, message: "Yes".into() }),
        digit: None,
        duration: None,
    })
}

fn any_stages() -> impl Strategy<Value = Vec<ChannelStage>> {
    let lifetime = prop::option::of(prop_oneof![60_u64..500_000, any::<u64>()]);
    let channels = Just(Channel::ALL[..6].to_vec()).prop_shuffle();
    (channels, prop::collection::vec(lifetime, 1..=6)).prop_map(|(channels, lifetimes)| {
        let stages = channels.into_iter().zip(lifetimes);
        stages.map(|(channel, lifetime)| ChannelStage::new(channel, 1, lifetime)).collect()
    })
}

proptest! {
    #[test]
    fn lifecycle_moves_forward_to_a_final_status(
        seed: u64,
        behaviours in prop::collection::vec(any_behaviour(), 6),
        stages in any_stages(),
        phone in 10_000_u64..1_000_000_000_000_000,
    ) {
        let mut scenario = Scenario { seed, ..Scenario::default() };
        for (channel, behaviour) in Channel::ALL.into_iter().zip(behaviours) {
            scenario.behaviours.set(channel, behaviour);
        }
        let lifecycle = simulate_lifecycle(&scenario, &stages, phone);
        prop_assert_eq!(&lifecycle, &simulate_lifecycle(&scenario, &stages, phone));
        prop_assert!(lifecycle.windows(2).all(|pair| pair[0].2 <= pair[1].2));
        // QUEUED, an attempt for each stage, delivered, read, replied.
        prop_assert!(lifecycle.len() <= stages.len() + 4);
        let stage_index = |channel| stages.iter().position(|stage| stage.channel == channel);
        prop_assert!(lifecycle.windows(2).all(|pair| stage_index(pair[0].0) <= stage_index(pair[1].0)));
        let words: Vec<_> = lifecycle.iter().map(|(_, word, _)| word.as_str()).collect();
        let order = |word: &str| ["QUEUED", "ACCEPTED", "DELIVERED", "READ", "REPLIED"].iter().position(|w| *w == word);
        prop_assert!(words.windows(2).all(|pair| order(pair[1]).is_none() || order(pair[0]) <= order(pair[1])));
        prop_assert!(!matches!(words.last(), None | Some(&"QUEUED" | &"ACCEPTED")));
        prop_assert_eq!(words.contains(&"DELIVERED"), !matches!(words.last(), Some(&"UNDELIVERABLE" | &"EXPIRED")));
    }
}
