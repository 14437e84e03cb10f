//! What runs by itself: what is armed, and that an occurrence fires at most once.

use jiff::{SignedDuration, Timestamp};

use super::scene::*;
use crate::ledger::{ArmedSchedule, Fate, Ledger, OccurrenceKey, OccurrenceRecord, RunFilter};

fn armed(name: &str) -> ArmedSchedule {
    let at = moment(0);
    ArmedSchedule {
        name: name.to_owned(),
        file: "/campaigns/sale.yaml".to_owned(),
        digest: "00ff".to_owned(),
        gateway: "main".to_owned(),
        addresses: "https://gateway.example".to_owned(),
        account: "account".to_owned(),
        by: "olena".to_owned(),
        armed_at: at,
        since: at,
        paused: false,
    }
}

async fn armed_schedules(ledger: &impl Ledger) -> Vec<ArmedSchedule> {
    ledger.schedules().await.unwrap().into_iter().map(|stored| stored.expect("an intact record")).collect()
}

async fn latest(ledger: &impl Ledger, (schedule, until): (&str, Timestamp), most: u32) -> Vec<OccurrenceRecord> {
    let stored = ledger.occurrences(schedule, until, most).await.unwrap();
    stored.into_iter().map(|stored| stored.expect("an intact record")).collect()
}

fn key(schedule: &str, day: u32) -> OccurrenceKey {
    let nominal = format!("2026-12-{day:02} 10:00");
    OccurrenceKey { schedule: schedule.to_owned(), nominal, zone: "Europe/Kyiv".to_owned() }
}

/// The moment of the occurrence of a day in December.
fn moment(day: u32) -> Timestamp {
    "2026-11-30T08:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_hours(24 * i64::from(day))
}

pub(super) async fn what_is_armed_is_kept_paused_resumed_and_forgotten_by_its_name<L: Ledger>(scene: Scene<L>) {
    let ledger = &scene.ledger;
    ledger.arm(armed("sale")).await.unwrap();
    ledger.arm(armed("daily")).await.unwrap();
    assert_eq!(armed_schedules(ledger).await, [armed("daily"), armed("sale")]);
    let again = ArmedSchedule { digest: "11".to_owned(), ..armed("sale") };
    ledger.arm(again.clone()).await.unwrap();
    assert!(ledger.pause("daily").await.unwrap() && !ledger.pause("none").await.unwrap());
    let paused = ArmedSchedule { paused: true, ..armed("daily") };
    assert_eq!(armed_schedules(ledger).await, [paused, again.clone()]);
    assert!(ledger.resume("daily", moment(5)).await.unwrap() && !ledger.resume("none", moment(5)).await.unwrap());
    let resumed = ArmedSchedule { since: moment(5), ..armed("daily") };
    assert_eq!(armed_schedules(ledger).await, [resumed, again.clone()]);
    assert!(ledger.disarm("daily").await.unwrap() && !ledger.disarm("daily").await.unwrap());
    assert_eq!(armed_schedules(ledger).await, [again]);
}

pub(super) async fn an_occurrence_fires_at_most_once_whatever_becomes_of_its_run_and_its_schedule<L: Ledger>(
    scene: Scene<L>,
) {
    let (ledger, first) = (&scene.ledger, key("sale", 1));
    ledger.arm(armed("sale")).await.unwrap();
    assert_eq!(ledger.occurrence(&first).await.unwrap(), None);
    let run = ledger.fire(&new_run(2), &first, moment(1)).await.unwrap().expect("nobody fired it");
    ledger.open_run(run.key, None).await.unwrap();
    assert_eq!(ledger.occurrence(&first).await.unwrap(), Some(Fate::Fired(run.key)));
    assert_eq!(ledger.occurrence_of(run.key).await.unwrap().map(|record| record.key), Some(first.clone()));
    assert_eq!(ledger.occurrence_of(scene.run.key).await.unwrap(), None, "a run that was begun by hand");
    assert!(ledger.fire(&new_run(3), &first, moment(1)).await.unwrap().is_none());
    assert!(!ledger.skip(&first, moment(1), "too late").await.unwrap());
    ledger.retire(run.key).await.unwrap();
    ledger.disarm("sale").await.unwrap();
    ledger.arm(armed("sale")).await.unwrap();
    assert!(ledger.fire(&new_run(4), &first, moment(1)).await.unwrap().is_none(), "neither replaced nor armed anew");
    assert_eq!(ledger.runs(RunFilter::all()).await.unwrap().len(), 2, "no run was left behind");
    for other in [key("sale", 2), key("daily", 1), OccurrenceKey { zone: "UTC".to_owned(), ..first }] {
        assert!(ledger.fire(&new_run(5), &other, moment(1)).await.unwrap().is_some(), "{other:?} is another one");
    }
}

pub(super) async fn an_occurrence_that_was_left_out_never_fires<L: Ledger>(scene: Scene<L>) {
    let (ledger, first) = (&scene.ledger, key("sale", 1));
    assert!(ledger.skip(&first, moment(1), "too late").await.unwrap());
    assert!(!ledger.skip(&first, moment(1), "another reason").await.unwrap());
    assert!(ledger.fire(&new_run(2), &first, moment(1)).await.unwrap().is_none());
    assert_eq!(ledger.occurrence(&first).await.unwrap(), Some(Fate::Skipped("too late".to_owned())));
}

pub(super) async fn an_occurrence_whose_run_was_never_opened_may_fire_again<L: Ledger>(scene: Scene<L>) {
    let (ledger, first) = (&scene.ledger, key("sale", 1));
    // The process died before the copies were in place: nothing of that run can have been sent.
    let lost = ledger.fire(&new_run(2), &first, moment(1)).await.unwrap().expect("nobody fired it");
    let run = ledger.fire(&new_run(3), &first, moment(1)).await.unwrap().expect("nothing was sent of it");
    assert_ne!(lost.key, run.key);
    assert_eq!(ledger.occurrence(&first).await.unwrap(), Some(Fate::Fired(run.key)));
}

pub(super) async fn an_occurrence_is_given_up_if_its_run_was_never_opened_and_else_not<L: Ledger>(scene: Scene<L>) {
    let (ledger, [first, second, third]) = (&scene.ledger, [1, 2, 3].map(|day| key("sale", day)));
    let lost = ledger.fire(&new_run(2), &first, moment(1)).await.unwrap().expect("nobody fired it");
    let sent = ledger.fire(&new_run(3), &second, moment(2)).await.unwrap().expect("nobody fired it");
    ledger.open_run(sent.key, None).await.unwrap();
    for (key, day, given_up) in [(&first, 1, true), (&first, 1, false), (&second, 2, false), (&third, 3, false)] {
        assert_eq!(ledger.give_up(key, moment(day), "missed").await.unwrap(), given_up, "{key:?}");
    }
    let skipped = OccurrenceRecord { key: first.clone(), at: moment(1), fate: Fate::Skipped("missed".to_owned()) };
    assert_eq!(latest(ledger, ("sale", moment(1)), 5).await, [skipped]);
    assert_eq!(ledger.occurrence_of(lost.key).await.unwrap(), None);
    assert!(ledger.fire(&new_run(4), &first, moment(1)).await.unwrap().is_none());
    assert_eq!(ledger.occurrence(&second).await.unwrap(), Some(Fate::Fired(sent.key)));
    assert_eq!(ledger.occurrence(&third).await.unwrap(), None);
}

pub(super) async fn the_last_occurrences_until_a_moment_are_told<L: Ledger>(scene: Scene<L>) {
    let ledger = &scene.ledger;
    for day in [3, 1, 2, 9] {
        ledger.skip(&key("sale", day), moment(day), "told").await.unwrap();
    }
    ledger.skip(&key("daily", 4), moment(4), "another's").await.unwrap();
    let told =
        |day| OccurrenceRecord { key: key("sale", day), at: moment(day), fate: Fate::Skipped("told".to_owned()) };
    assert_eq!(latest(ledger, ("sale", moment(8)), 2).await, [told(3), told(2)]);
    assert_eq!(latest(ledger, ("sale", moment(2)), 5).await, [told(2), told(1)]);
    assert!(ledger.occurrences("none", moment(8), 5).await.unwrap().is_empty());
}
