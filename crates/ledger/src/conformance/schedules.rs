//! Conformance tests of schedules: activation, and occurrences that fire at most once.

use jiff::{SignedDuration, Timestamp};

use super::scene::*;
use crate::{
    ActiveSchedule, Ledger, NewRun, OccurrenceFilter, OccurrenceKey, OccurrenceOutcome, OccurrenceRecord, Run,
    RunFilter, RunId, RunUpdate, ScheduleOrder, ScheduleUpdate, ScheduledOccurrence, SkipCondition, find_occurrence,
};

fn active_schedule(name: &str) -> ActiveSchedule {
    let at = moment(0);
    ActiveSchedule {
        name: name.to_owned(),
        file: "/campaigns/sale.yaml".to_owned(),
        digest: "00ff".to_owned(),
        gateway: "main".to_owned(),
        addresses: "https://gateway.example".to_owned(),
        account: "account".to_owned(),
        by: "olena".to_owned(),
        activated_at: at,
        since: at,
        paused: false,
    }
}

async fn list_active(ledger: &dyn Ledger) -> Vec<ActiveSchedule> {
    ledger.list_schedules().await.unwrap().into_iter().map(|stored| stored.expect("an intact record")).collect()
}

async fn list_latest(ledger: &dyn Ledger, (schedule, until): (&str, Timestamp), limit: u32) -> Vec<OccurrenceRecord> {
    let stored = ledger.list_occurrences(OccurrenceFilter::Latest { schedule, until, most: limit }).await.unwrap();
    stored.into_iter().map(|stored| stored.expect("an intact record")).collect()
}

async fn change_schedule(ledger: &dyn Ledger, schedule: &str, order: ScheduleOrder) -> bool {
    ledger.update_schedules(ScheduleUpdate::Order { name: schedule.to_owned(), order }).await.unwrap()
}

async fn activate(ledger: &dyn Ledger, schedule: ActiveSchedule) {
    assert!(ledger.update_schedules(ScheduleUpdate::Activate(schedule)).await.unwrap());
}

async fn fire(ledger: &dyn Ledger, new: &NewRun, key: &OccurrenceKey, at: Timestamp) -> Option<Run> {
    ledger.create_run(new, Some(&ScheduledOccurrence { key: key.clone(), at })).await.unwrap()
}

async fn skip(ledger: &dyn Ledger, key: &OccurrenceKey, at: Timestamp, reason: &str) -> bool {
    skip_if(ledger, key, at, (reason, SkipCondition::NotRecorded)).await
}

async fn skip_if(
    ledger: &dyn Ledger,
    key: &OccurrenceKey,
    at: Timestamp,
    (reason, condition): (&str, SkipCondition),
) -> bool {
    let occurrence = ScheduledOccurrence { key: key.clone(), at };
    let skip = ScheduleUpdate::Skip { occurrence, reason: reason.to_owned(), condition };
    ledger.update_schedules(skip).await.unwrap()
}

async fn find_outcome(ledger: &dyn Ledger, key: &OccurrenceKey) -> Option<OccurrenceOutcome> {
    find_occurrence(ledger, OccurrenceFilter::Key(key)).await.unwrap().map(|record| record.outcome)
}

async fn find_key(ledger: &dyn Ledger, run: RunId) -> Option<OccurrenceKey> {
    find_occurrence(ledger, OccurrenceFilter::Run(run)).await.unwrap().map(|record| record.key)
}

fn key(schedule: &str, day: u32) -> OccurrenceKey {
    let nominal = format!("2026-12-{day:02} 10:00");
    OccurrenceKey { schedule: schedule.to_owned(), nominal, zone: "Europe/Kyiv".to_owned() }
}

/// The time of the occurrence on the given day of December.
fn moment(day: u32) -> Timestamp {
    "2026-11-30T08:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_hours(24 * i64::from(day))
}

pub(super) async fn schedule_is_kept_paused_resumed_and_removed_by_name(scene: Scene) {
    let ledger = scene.port();
    activate(ledger, active_schedule("sale")).await;
    activate(ledger, active_schedule("daily")).await;
    assert_eq!(list_active(ledger).await, [active_schedule("daily"), active_schedule("sale")]);
    let again = ActiveSchedule { digest: "11".to_owned(), ..active_schedule("sale") };
    activate(ledger, again.clone()).await;
    assert!(
        change_schedule(ledger, "daily", ScheduleOrder::Pause).await
            && !change_schedule(ledger, "none", ScheduleOrder::Pause).await
    );
    let paused = ActiveSchedule { paused: true, ..active_schedule("daily") };
    assert_eq!(list_active(ledger).await, [paused, again.clone()]);
    assert!(
        change_schedule(ledger, "daily", ScheduleOrder::Resume { since: moment(5) }).await
            && !change_schedule(ledger, "none", ScheduleOrder::Resume { since: moment(5) }).await
    );
    let resumed = ActiveSchedule { since: moment(5), ..active_schedule("daily") };
    assert_eq!(list_active(ledger).await, [resumed, again.clone()]);
    assert!(
        change_schedule(ledger, "daily", ScheduleOrder::Remove).await
            && !change_schedule(ledger, "daily", ScheduleOrder::Remove).await
    );
    assert_eq!(list_active(ledger).await, [again]);
}

pub(super) async fn occurrence_fires_at_most_once(scene: Scene) {
    let (ledger, first) = (scene.port(), key("sale", 1));
    activate(ledger, active_schedule("sale")).await;
    assert_eq!(find_outcome(ledger, &first).await, None);
    let run = fire(ledger, &new_run(2), &first, moment(1)).await.expect("it is not recorded");
    ledger.open_run(run.key, None, None).await.unwrap();
    assert_eq!(find_outcome(ledger, &first).await, Some(OccurrenceOutcome::Fired(run.key)));
    assert_eq!(find_key(ledger, run.key).await, Some(first.clone()));
    assert_eq!(find_key(ledger, scene.run.key).await, None, "a manual run");
    assert!(fire(ledger, &new_run(3), &first, moment(1)).await.is_none());
    assert!(!skip(ledger, &first, moment(1), "too late").await);
    ledger.update_runs(vec![run.key], RunUpdate::Retired).await.unwrap();
    change_schedule(ledger, "sale", ScheduleOrder::Remove).await;
    activate(ledger, active_schedule("sale")).await;
    assert!(
        fire(ledger, &new_run(4), &first, moment(1)).await.is_none(),
        "not even after replacement and reactivation"
    );
    assert_eq!(ledger.list_runs(RunFilter::all()).await.unwrap().len(), 2, "no run was left behind");
    for other in [key("sale", 2), key("daily", 1), OccurrenceKey { zone: "UTC".to_owned(), ..first }] {
        assert!(fire(ledger, &new_run(5), &other, moment(1)).await.is_some(), "{other:?} is another occurrence");
    }
}

pub(super) async fn skipped_occurrence_never_fires(scene: Scene) {
    let (ledger, first) = (scene.port(), key("sale", 1));
    assert!(skip(ledger, &first, moment(1), "too late").await);
    assert!(!skip(ledger, &first, moment(1), "another reason").await);
    assert!(fire(ledger, &new_run(2), &first, moment(1)).await.is_none());
    assert_eq!(find_outcome(ledger, &first).await, Some(OccurrenceOutcome::Skipped("too late".to_owned())));
}

pub(super) async fn occurrence_with_an_unopened_run_may_fire_again(scene: Scene) {
    let (ledger, first) = (scene.port(), key("sale", 1));
    // The process died before the copies were in place, so the run sent nothing.
    let lost = fire(ledger, &new_run(2), &first, moment(1)).await.expect("it is not recorded");
    let run = fire(ledger, &new_run(3), &first, moment(1)).await.expect("the run sent nothing");
    assert_ne!(lost.key, run.key);
    assert_eq!(find_outcome(ledger, &first).await, Some(OccurrenceOutcome::Fired(run.key)));
}

pub(super) async fn only_an_occurrence_with_an_unopened_run_is_abandoned(scene: Scene) {
    let (ledger, [first, second, third]) = (scene.port(), [1, 2, 3].map(|day| key("sale", day)));
    let lost = fire(ledger, &new_run(2), &first, moment(1)).await.expect("it is not recorded");
    let sent = fire(ledger, &new_run(3), &second, moment(2)).await.expect("it is not recorded");
    ledger.open_run(sent.key, None, None).await.unwrap();
    for (key, day, is_abandoned) in [(&first, 1, true), (&first, 1, false), (&second, 2, false), (&third, 3, false)] {
        assert_eq!(
            skip_if(ledger, key, moment(day), ("missed", SkipCondition::RunNotOpened)).await,
            is_abandoned,
            "{key:?}"
        );
    }
    let skipped = OccurrenceRecord {
        key: first.clone(),
        at: moment(1),
        outcome: OccurrenceOutcome::Skipped("missed".to_owned()),
    };
    assert_eq!(list_latest(ledger, ("sale", moment(1)), 5).await, [skipped]);
    assert_eq!(find_key(ledger, lost.key).await, None);
    assert!(fire(ledger, &new_run(4), &first, moment(1)).await.is_none());
    assert_eq!(find_outcome(ledger, &second).await, Some(OccurrenceOutcome::Fired(sent.key)));
    assert_eq!(find_outcome(ledger, &third).await, None);
}

pub(super) async fn latest_occurrences_are_listed_up_to_a_moment(scene: Scene) {
    let ledger = scene.port();
    for day in [3, 1, 2, 9] {
        skip(ledger, &key("sale", day), moment(day), "reported").await;
    }
    skip(ledger, &key("daily", 4), moment(4), "another's").await;
    let reported = |day| OccurrenceRecord {
        key: key("sale", day),
        at: moment(day),
        outcome: OccurrenceOutcome::Skipped("reported".to_owned()),
    };
    assert_eq!(list_latest(ledger, ("sale", moment(8)), 2).await, [reported(3), reported(2)]);
    assert_eq!(list_latest(ledger, ("sale", moment(2)), 5).await, [reported(2), reported(1)]);
    assert!(
        ledger
            .list_occurrences(OccurrenceFilter::Latest { schedule: "none", until: moment(8), most: 5 })
            .await
            .unwrap()
            .is_empty()
    );
}
