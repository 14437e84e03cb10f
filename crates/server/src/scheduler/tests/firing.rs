//! Tests of occurrences that fire once, are skipped or wait, even after failures. Whole years in several time zones are
//! compared with occurrences computed by `tests/schedules/judge.py`.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::scheduler::tests::*;
use campaign_core::domain::NotificationEvent;
use campaign_ledger::{
    Approval, ApprovalFilter, OccurrenceFilter, OccurrenceOutcome, PlanRecord, RunFilter, ScheduleOrder,
    ScheduleUpdate, ScheduledOccurrence, find_occurrence,
};
use campaign_runs::PlanRefusal;

#[tokio::test(start_paused = true)]
async fn occurrence_fires_once_with_two_daemons() {
    set_clock("2026-10-20T00:10:00Z");
    let setup = TestSetup::new("timezone: Europe/Kyiv\nschedule: { cron: \"0 * * * *\" }");
    setup.activate().await.unwrap();
    let daemon = || {
        setup.test_daemon(setup.fake_starter(Duration::from_secs(1))).run_until_shutdown(tokio::time::sleep(10 * DAY))
    };
    let (first, second) = tokio::join!(daemon(), daemon());
    assert!(first.is_ok() && second.is_ok());
    let mut fired = setup.fired_occurrences();
    assert_eq!(fired.len(), 239, "one hour occurs twice");
    fired.dedup();
    assert_eq!(fired.len(), 239, "none fired twice");
    assert!(setup.reported_events().is_empty(), "{:?}", setup.reported_events());
}

#[tokio::test(start_paused = true)]
async fn restarted_daemon_fires_or_skips_each_occurrence_once() {
    set_clock("2026-12-01T00:10:00Z");
    let setup = TestSetup::new("timezone: UTC\nschedule: { cron: \"*/10 * * * *\", grace: 5m }");
    setup.activate().await.unwrap();
    let uptimes = [3_000, 61, 599, 7_300, 1, 1_800, 601, 86_400, 13, 5_000];
    for (uptime, downtime) in uptimes.into_iter().zip([1, 90, 400, 30, 0, 7_000, 299, 301, 1_000, 2]) {
        let daemon = setup.test_daemon(setup.fake_starter(Duration::from_secs(1)));
        // The daemon is dropped at an arbitrary point.
        let _ =
            tokio::time::timeout(Duration::from_secs(uptime), daemon.run_until_shutdown(std::future::pending())).await;
        tokio::time::sleep(Duration::from_secs(downtime)).await;
    }
    let fired = setup.fired_occurrences();
    let mut distinct = fired.clone();
    distinct.dedup();
    assert_eq!(fired, distinct);
    let count_skipped = |event: &String| {
        let before = event.split("after ").nth(1).and_then(|rest| rest.split(':').next()).expect("a number");
        1 + before.parse::<usize>().expect("a number")
    };
    let skipped: usize = setup.reported_events().iter().map(count_skipped).sum();
    // Occurrences that were missed during the last downtime have no record yet.
    let total =
        (now() - "2026-12-01T00:10:00Z".parse::<Timestamp>().unwrap()).total(jiff::Unit::Minute).unwrap() / 10.0;
    assert!((fired.len() + skipped).abs_diff(total as usize) <= 1, "{} and {skipped} of {total}", fired.len());
    assert!(skipped > 10, "{:?}", setup.reported_events());
}

#[tokio::test(start_paused = true)]
async fn recorded_occurrence_whose_run_was_not_opened_fires_again() {
    set_clock("2026-12-01T09:59:00Z");
    let setup = TestSetup::new("timezone: UTC\nschedule: { every: day 10:00 }");
    let active = setup.activate().await.unwrap();
    tokio::time::sleep(Duration::from_secs(120)).await;
    let ledger = Arc::clone(&setup.adapters.ledger);
    let due = Occurrence::at_local_time("2026-12-01T10:00:00".parse().unwrap(), &jiff::tz::TimeZone::UTC).unwrap();
    let key = occurrence_key(&active.name, &due);
    let occurrence = ScheduledOccurrence { key: key.clone(), at: due.at };
    let unopened = ledger.create_run(&new_run(), Some(&occurrence)).await.unwrap().unwrap();
    // The record of the unopened run does not prevent another start of the occurrence.
    let starter = setup.fake_starter(Duration::from_secs(1));
    let (_stop, interrupt) = watch::channel(Interrupt::None);
    let _ = starter.start_occurrence(active.clone(), due.clone(), interrupt.clone()).await;
    assert_eq!(setup.fired_occurrences().len(), 1);
    let recorded = find_occurrence(ledger.as_ref(), OccurrenceFilter::Key(&key)).await.unwrap();
    assert_ne!(recorded.map(|record| record.outcome), Some(OccurrenceOutcome::Fired(unopened.key)));
    let again = starter.start_occurrence(active, due, interrupt).await;
    assert!(matches!(again, Err(Error::Schedule(ScheduleRefusal::Recorded { .. }))), "{again:?}");
    assert_eq!(setup.fired_occurrences().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn run_that_began_before_the_activation_is_not_resumed() {
    for activates_again in [false, true] {
        set_clock("2026-12-01T09:59:00Z");
        let setup = TestSetup::new("timezone: UTC\nschedule: { every: day 10:00 }");
        let active = setup.activate().await.unwrap();
        tokio::time::sleep(Duration::from_secs(120)).await;
        let due = Occurrence::at_local_time("2026-12-01T10:00:00".parse().unwrap(), &jiff::tz::TimeZone::UTC).unwrap();
        let occurrence = ScheduledOccurrence { key: occurrence_key(&active.name, &due), at: due.at };
        setup.adapters.ledger.create_run(&new_run(), Some(&occurrence)).await.unwrap().unwrap();
        if activates_again {
            setup.activate().await.unwrap();
        }
        setup.run_daemon_for(Duration::from_secs(600)).await;
        assert_eq!(setup.fired_occurrences().is_empty(), activates_again);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_occurrence_is_skipped_after_pause_or_reactivation() {
    for pauses in [false, true] {
        set_clock("2026-12-01T09:59:00Z");
        let setup = TestSetup::new("timezone: UTC\nschedule: { every: day 10:00, wait_for_file: 2h }");
        let list = fs::read_to_string(setup.folder.path().join("sale.csv")).unwrap();
        fs::remove_file(setup.folder.path().join("sale.csv")).unwrap();
        setup.activate().await.unwrap();
        let daemon = setup.test_daemon(setup.fake_starter(Duration::from_secs(1)));
        let pause_or_reactivate = async {
            tokio::time::sleep(Duration::from_secs(600)).await;
            if pauses {
                let ledger = &setup.adapters.ledger;
                assert!(ledger.update_schedules(sale_update(ScheduleOrder::Pause)).await.unwrap());
                assert!(ledger.update_schedules(sale_update(ScheduleOrder::Resume { since: now() })).await.unwrap());
            } else {
                setup.activate().await.unwrap();
            }
            tokio::time::sleep(Duration::from_secs(10)).await;
            setup.write_file("sale.csv", &list);
            tokio::time::sleep(Duration::from_secs(3_600)).await;
        };
        daemon.run_until_shutdown(pause_or_reactivate).await.unwrap();
        assert_eq!(setup.fired_occurrences(), Vec::<String>::new());
        let reason = "the schedule was paused or activated again while this run was waiting";
        let skipped = format!("2026-12-01 10:00 skipped after 0: {reason}");
        assert_eq!(setup.reported_events(), ["2026-12-01 10:00 waits".to_owned(), skipped]);
    }
}

#[tokio::test(start_paused = true)]
async fn clock_jump_does_not_fire_an_occurrence_twice() {
    set_clock("2026-12-01T00:10:00Z");
    let setup = TestSetup::new("timezone: UTC\nschedule: { cron: \"0 * * * *\", grace: 10m }");
    setup.activate().await.unwrap();
    let refresh = Duration::from_secs(60);
    let daemon = Daemon { refresh, ..setup.test_daemon(setup.fake_starter(Duration::from_secs(1))) };
    let stop = async {
        tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
        set_clock("2026-12-11T00:30:00Z");
        tokio::time::sleep(Duration::from_secs(3600)).await;
        set_clock("2026-12-01T02:30:00Z");
        tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
    };
    daemon.run_until_shutdown(stop).await.unwrap();
    let hour = |day: u8, hour: u8| format!("2026-12-{day:02}T{hour:02}:00Z\t2026-12-{day:02} {hour:02}:00");
    assert_eq!(setup.fired_occurrences(), [hour(1, 1), hour(1, 2), hour(1, 3), hour(11, 1), hour(1, 4), hour(1, 5)]);
    let missed = "2026-12-11 00:00 skipped after 236: missed";
    assert_eq!(setup.reported_events(), [missed], "3 occurrences fired on the 1st, and the 236 after them were missed");
}

#[tokio::test(start_paused = true)]
async fn busy_ledger_does_not_lose_an_occurrence() {
    set_clock("2026-12-01T00:10:00Z");
    let mut setup = TestSetup::new("timezone: UTC\nschedule: { cron: \"0 * * * *\", grace: 10m, wait_for_file: 5m }");
    let ledger = Arc::new(MemoryLedger::new(LedgerContents::default(), now));
    setup.adapters.ledger = ledger.clone();
    setup.activate().await.unwrap();
    fs::remove_file(setup.folder.path().join("sale.csv")).unwrap();
    let refresh = Duration::from_secs(60);
    let daemon = Daemon { refresh, ..setup.test_daemon(setup.fake_starter(Duration::from_secs(1))) };
    let stop = async {
        // The lists for the 1:00 and 2:00 occurrences do not arrive, and nothing can be recorded until 2:30.
        tokio::time::sleep(Duration::from_secs(52 * 60)).await;
        ledger.set_busy(true);
        tokio::time::sleep(Duration::from_secs(88 * 60)).await;
        ledger.set_busy(false);
        tokio::time::sleep(Duration::from_secs(60 * 60)).await;
    };
    daemon.run_until_shutdown(stop).await.unwrap();
    let missed = "2026-12-01 02:00 skipped after 1: missed".to_owned();
    assert!(setup.reported_events().contains(&missed), "{:?}", setup.reported_events());
}

#[tokio::test(start_paused = true)]
async fn changed_campaign_fires_only_after_reactivation() {
    set_clock("2026-12-01T00:10:00Z");
    let daily = "timezone: UTC\nschedule: { every: day 10:00 }";
    let setup = TestSetup::new(daily);
    setup.activate().await.unwrap();
    setup.run_daemon_for(DAY).await;
    setup.write_campaign(daily, "Something else");
    setup.run_daemon_for(DAY).await;
    assert_eq!(setup.fired_occurrences().len(), 1);
    assert_eq!(setup.reported_events(), ["changed: Campaign"], "a new daemon does not know when the old file was due");
    setup.activate().await.unwrap();
    setup.run_daemon_for(DAY).await;
    setup.write_file(
        "gateways.yaml",
        "other:\n  base_url: http://127.0.0.1:9\n  api_key: { env: KEY }\n  rate: unlimited\n",
    );
    setup.run_daemon_for(DAY).await;
    assert_eq!(setup.fired_occurrences().len(), 3, "another profile changes nothing");
    let daemon = setup.test_daemon(setup.fake_starter(Duration::from_secs(1)));
    let changing = async {
        tokio::time::sleep(DAY / 4).await;
        setup.write_campaign(daily, "And else again");
        tokio::time::sleep(DAY).await;
    };
    daemon.run_until_shutdown(changing).await.unwrap();
    let skipped = "2026-12-05 10:00 skipped after 0: the campaign has changed since its schedule was activated";
    assert_eq!(setup.reported_events()[1..], ["changed: Campaign", skipped], "{:?}", setup.reported_events());
    assert_eq!(setup.fired_occurrences().len(), 3);
}

fn sale_update(order: ScheduleOrder) -> ScheduleUpdate {
    ScheduleUpdate::Order { name: "sale".to_owned(), order }
}

#[tokio::test(start_paused = true)]
async fn occurrence_is_skipped_during_a_run_or_a_pause() {
    set_clock("2026-12-01T00:10:00Z");
    let setup = TestSetup::new("timezone: UTC\nschedule: { cron: \"0 * * * *\" }");
    setup.activate().await.unwrap();
    let slow = setup.test_daemon(setup.fake_starter(Duration::from_secs(5_000)));
    slow.run_until_shutdown(tokio::time::sleep(Duration::from_secs(4 * 3600))).await.unwrap();
    assert_eq!(setup.fired_occurrences().len(), 2);
    let busy = |hour: u8| format!("2026-12-01 {hour:02}:00 skipped after 0: the campaign was still being sent");
    assert_eq!(setup.reported_events(), [busy(2), busy(4)]);
    let ledger = Arc::clone(&setup.adapters.ledger);
    assert!(ledger.update_schedules(sale_update(ScheduleOrder::Pause)).await.unwrap());
    setup.run_daemon_for(DAY).await;
    assert!(ledger.update_schedules(sale_update(ScheduleOrder::Resume { since: now() })).await.unwrap());
    setup.run_daemon_for(Duration::from_secs(3600)).await;
    assert_eq!(
        (setup.fired_occurrences().len(), setup.reported_events().len()),
        (3, 2),
        "occurrences that were due during the pause do not fire"
    );
}

#[tokio::test(start_paused = true)]
async fn occurrence_waits_for_a_run_that_ends_within_grace() {
    // Each run ends two seconds after its `until`.
    for (until, grace, days) in [("24h", "1h", [1, 2, 3, 4].as_slice()), ("26h", "1h", &[1, 3]), ("26h", "3h", &[1, 2])]
    {
        set_clock("2026-12-01T09:59:00Z");
        let timing = format!("schedule: {{ every: day 10:00, grace: {grace} }}\ndelivery: {{ until: {until} }}");
        let setup = TestSetup::new(&format!("timezone: UTC\n{timing}"));
        setup.activate().await.unwrap();
        let hours: u64 = until.trim_end_matches('h').parse().unwrap();
        let daemon = setup.test_daemon(setup.fake_starter(Duration::from_secs(hours * 3_600 + 2)));
        let days_served = u32::try_from(days.len()).unwrap().max(3);
        daemon.run_until_shutdown(tokio::time::sleep(days_served * DAY + DAY / 2)).await.unwrap();
        let nominal_date = |fired: &String| fired.split_once('\t').expect("a nominal time").1[..10].to_owned();
        let fired: Vec<String> = setup.fired_occurrences().iter().map(nominal_date).collect();
        let expected: Vec<String> = days.iter().map(|day| format!("2026-12-0{day}")).collect();
        assert_eq!(fired[..days.len()], expected, "{until} {grace}: {:?}", setup.reported_events());
    }
}

#[tokio::test(start_paused = true)]
async fn occurrence_waits_for_its_list_until_timeout() {
    set_clock("2026-12-01T00:10:00Z");
    let setup = TestSetup::new("timezone: UTC\nschedule: { every: day 10:00, wait_for_file: 2h }");
    fs::remove_file(setup.folder.path().join("sale.csv")).unwrap();
    let yaml = fs::read_to_string(setup.folder.path().join("sale.yaml")).unwrap();
    setup.write_file("sale.yaml", &yaml.replace("file: sale.csv", "file: \"daily-{{ today }}.csv\""));
    setup.activate().await.unwrap();
    let daemon = setup.test_daemon(setup.fake_starter(Duration::from_secs(1)));
    let arrive = async {
        // Half of the file arrives at 10:30, the rest two seconds later.
        tokio::time::sleep(Duration::from_secs(37_200)).await;
        setup.write_file("daily-2026-12-01.csv", "phone\n");
        tokio::time::sleep(Duration::from_secs(2)).await;
        setup.write_file("daily-2026-12-01.csv", "phone\n+380500000001\n");
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(setup.fired_occurrences().is_empty(), "the file might be incomplete");
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(setup.fired_occurrences().len(), 1);
        tokio::time::sleep(DAY + DAY / 2).await;
    };
    daemon.run_until_shutdown(arrive).await.unwrap();
    let list = setup.folder.path().join("daily-2026-12-02.csv");
    let skipped = format!("2026-12-02 10:00 skipped after 0: the list did not arrive in time: {}", list.display());
    let events = ["2026-12-01 10:00 waits", "2026-12-02 10:00 waits", &skipped];
    assert_eq!((setup.reported_events(), setup.fired_occurrences().len()), (events.map(str::to_owned).to_vec(), 1));
}

#[tokio::test(start_paused = true)]
async fn grace_period_counts_from_due_time_or_list_arrival() {
    let missed = "2026-12-01 10:00 skipped after 0: missed";
    // The time at which the list arrives, the time at which the daemon starts, and the expected event.
    for (arrival, daemon_start, events) in [
        ("2026-12-01T09:00:00Z", "2026-12-01T10:09:00Z", None),
        ("2026-12-01T09:00:00Z", "2026-12-01T14:59:00Z", Some(missed)),
        ("2026-12-01T14:50:00Z", "2026-12-01T14:59:00Z", None),
        ("2026-12-01T14:40:00Z", "2026-12-01T14:59:00Z", Some(missed)),
        ("2026-12-01T16:00:00Z", "2026-12-01T16:01:00Z", Some(missed)),
    ] {
        set_clock("2026-12-01T08:00:00Z");
        let setup = TestSetup::new("timezone: UTC\nschedule: { at: 2026-12-01 10:00, grace: 10m, wait_for_file: 6h }");
        setup.activate().await.unwrap();
        let list = fs::File::options().write(true).open(setup.folder.path().join("sale.csv")).unwrap();
        list.set_modified(arrival.parse::<jiff::Timestamp>().unwrap().into()).unwrap();
        set_clock(daemon_start);
        setup.run_daemon_for(Duration::from_secs(600)).await;
        assert_eq!(setup.reported_events(), events.as_slice(), "{arrival}, {daemon_start}");
        assert_eq!(setup.fired_occurrences().len(), usize::from(events.is_none()), "{arrival}, {daemon_start}");
    }
}

#[tokio::test]
async fn each_occurrence_gets_its_own_run_and_edition() {
    set_clock("2026-12-01T09:59:59.7Z");
    let setup = TestSetup::new("timezone: UTC\nnotify: { command: [\"true\"] }\nschedule: { every: day 10:00 }");
    setup.activate().await.unwrap();
    for day in ["2026-12-01", "2026-12-02"] {
        set_clock(&format!("{day}T09:59:59.7Z"));
        let starter = Arc::new(RunStarter(setup.adapters.clone()));
        let (events, events_before) = (Arc::clone(&setup.events), setup.reported_events().len());
        let ended = async move {
            while events.lock().unwrap().len() == events_before {
                tokio::task::yield_now().await;
            }
        };
        setup.test_daemon(starter).run_until_shutdown(ended).await.unwrap();
        assert!(
            setup.folder.path().join(format!("results/sale-{day}-10-00.sandbox.csv")).exists(),
            "{:?}",
            setup.reported_events()
        );
    }
    let events = ["2026-12-01 10:00 ended: sale@1 of 2, same false", "2026-12-02 10:00 ended: sale@2 of 2, same true"];
    assert_eq!(setup.reported_events(), events);
    let runs = setup.adapters.ledger.list_runs(RunFilter::all()).await.unwrap();
    let waiting = setup.adapters.ledger.take_notifications(Duration::ZERO, DAY).await.unwrap();
    let [notification] = waiting.as_slice() else { panic!("{waiting:?}") };
    assert_eq!(notification.content.occasion, NotificationEvent::Finished);
    assert!(
        notification.content.notice.contains("2026-12-02 10:00 sent the same message as the previous run"),
        "{notification:?}"
    );
    let editions: Vec<&str> = runs.iter().map(|run| run.edition.as_str()).collect();
    assert_eq!(editions, ["2026-12-01 10:00", "2026-12-02 10:00"]);
}

#[tokio::test(start_paused = true)]
async fn restarted_daemon_begins_a_recorded_run_within_grace() {
    for (absence, fires, events) in [(60, 1, None), (7_200, 0, Some("2026-12-01 10:00 skipped after 0: missed"))] {
        set_clock("2026-12-01T09:59:00Z");
        let setup = TestSetup::new("timezone: UTC\nschedule: { every: day 10:00 }");
        let active = setup.activate().await.unwrap();
        tokio::time::sleep(Duration::from_secs(61)).await;
        let due = Occurrence::at_local_time("2026-12-01T10:00:00".parse().unwrap(), &jiff::tz::TimeZone::UTC).unwrap();
        let occurrence = ScheduledOccurrence { key: occurrence_key(&active.name, &due), at: due.at };
        setup.adapters.ledger.create_run(&new_run(), Some(&occurrence)).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_secs(absence)).await;
        for _ in 0..2 {
            setup.run_daemon_for(Duration::from_secs(3_600)).await;
        }
        assert_eq!(setup.fired_occurrences().len(), fires, "{absence}: {:?}", setup.reported_events());
        assert_eq!(setup.reported_events(), events.as_slice(), "{absence}: it is reported once");
    }
}

/// A starter that starts only occurrences with an approval.
pub(super) struct GuardedStarter(pub(super) Arc<FakeStarter>);

impl Starter for GuardedStarter {
    fn start_occurrence(
        &self,
        active: ActiveSchedule,
        occurrence: Occurrence,
        interrupt: watch::Receiver<Interrupt>,
    ) -> BoxFuture<'static, Result<RunOutcome, Error>> {
        let (starter, digest) = (Arc::clone(&self.0), occurrence.format_nominal_time());
        Box::pin(async move {
            if !starter.ledger.list_approvals(ApprovalFilter::Digest(&digest)).await?.is_empty() {
                return starter.start_occurrence(active, occurrence, interrupt).await;
            }
            let (file, gateway) = (active.file.into(), active.gateway);
            let refusal = PlanRefusal::Unapproved { digest: Some(digest), file, gateway, number: 3, sent: 0, above: 2 };
            Err(Error::Plan(refusal))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn unapproved_occurrence_waits_a_day_or_until_the_next() {
    set_clock("2026-12-07T09:59:00Z");
    let setup = TestSetup::new("timezone: UTC\nschedule: { cron: \"0 10 * * 1,2,3\", ends: 2026-12-12 }");
    setup.activate().await.unwrap();
    let ledger = Arc::clone(&setup.adapters.ledger);
    let daemon = setup.test_daemon(Arc::new(GuardedStarter(setup.fake_starter(Duration::from_secs(1)))));
    let approve = async {
        // Monday's run is not approved before Tuesday's is due. Tuesday's is approved after five hours, and Wednesday's
        // never.
        tokio::time::sleep(Duration::from_secs(60) + DAY + Duration::from_secs(5 * 3600)).await;
        let digest = "2026-12-08 10:00".to_owned();
        let (token, by, at) = ("t".to_owned(), "olha".to_owned(), now());
        let until = at + SignedDuration::from_hours(1);
        ledger
            .store_record(PlanRecord::Approval(Approval { token, digest, by, up_to: 3, at, until, standing: false }))
            .await
            .unwrap();
    };
    let (served, ()) = tokio::join!(daemon.run_until_shutdown(tokio::time::sleep(5 * DAY)), approve);
    served.unwrap();
    assert_eq!(setup.fired_occurrences(), ["2026-12-08T10:00Z\t2026-12-08 10:00"]);
    let events = [
        "2026-12-07 10:00 waits for an approval of 2026-12-07 10:00",
        "2026-12-07 10:00 skipped after 0: the run was not approved in time",
        "2026-12-08 10:00 waits for an approval of 2026-12-08 10:00",
        "2026-12-09 10:00 waits for an approval of 2026-12-09 10:00",
        "2026-12-09 10:00 skipped after 0: the run was not approved in time",
    ];
    assert_eq!(setup.reported_events(), events);
}

/// A starter whose runs end with a panic.
struct PanickingStarter;

impl Starter for PanickingStarter {
    fn start_occurrence(
        &self,
        _: ActiveSchedule,
        _: Occurrence,
        _: watch::Receiver<Interrupt>,
    ) -> BoxFuture<'static, Result<RunOutcome, Error>> {
        Box::pin(async { panic!("a bug") })
    }
}

#[tokio::test(start_paused = true)]
async fn schedule_continues_after_a_run_that_ends_with_a_panic() {
    set_clock("2026-12-01T09:59:00Z");
    let setup = TestSetup::new("timezone: UTC\nschedule: { every: day 10:00 }");
    setup.activate().await.unwrap();
    let daemon = setup.test_daemon(Arc::new(PanickingStarter));
    daemon.run_until_shutdown(tokio::time::sleep(DAY + Duration::from_secs(600))).await.unwrap();
    let skipped = |day: &str| format!("{day} 10:00 skipped after 0: internal error: the run ended unexpectedly");
    assert_eq!(setup.reported_events(), ["2026-12-01", "2026-12-02"].map(skipped));
}

/// The occurrences computed by `tests/schedules/judge.py`.
const GOLDEN: &str = include_str!("../../../../../tests/schedules/golden.txt");

/// A year of occurrences in the golden file.
struct GoldenYear {
    year: i16,
    zone: &'static str,
    cron: &'static str,
    /// The number of occurrences.
    count: usize,
    /// The hash of the occurrences.
    hash: &'static str,
}

fn golden_years() -> Vec<GoldenYear> {
    let parse_line = |line: &'static str| {
        let [year, zone, cron, count, hash] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (year, count) = (year.parse().expect("a year"), count.parse().expect("a number"));
        GoldenYear { year, zone, cron, count, hash }
    };
    GOLDEN.lines().filter_map(|line| line.strip_prefix("= ")).map(parse_line).collect()
}

#[tokio::test(start_paused = true)]
async fn year_of_occurrences_matches_the_golden_file() {
    let unusual_crons = ["30 3 * * *", "15 2 * * *", "0 10 * * MON", "0 12 15 * MON"];
    // Clocks that change by an hour or by half an hour, and a calendar that skips a day.
    let zones = ["Europe/Kyiv", "Australia/Lord_Howe", "Pacific/Apia"];
    let mut fired = 0;
    for GoldenYear { year, zone, cron, count, hash } in golden_years() {
        let is_frequent = cron.starts_with("*/15") && zone == "Australia/Lord_Howe";
        let is_unusual = unusual_crons.contains(&cron) && zones.contains(&zone);
        if !is_unusual && !is_frequent {
            continue;
        }
        set_clock(&format!("{}-12-31T23:59:30Z", year - 1));
        let setup = TestSetup::new(&format!("timezone: {zone}\nschedule: {{ cron: \"{cron}\" }}"));
        setup.activate().await.expect("an active schedule");
        let days = if year % 4 == 0 { 366 } else { 365 };
        setup.run_daemon_for(days * DAY).await;
        let text: String = setup.fired_occurrences().iter().fold(String::new(), |text, line| text + line + "\n");
        let mut digest = String::new();
        Sha256::digest(text).iter().for_each(|byte| write!(digest, "{byte:02x}").expect("a string"));
        assert_eq!(
            (setup.fired_occurrences().len(), digest.as_str()),
            (count, hash),
            "{year} {zone} {cron}: {:?}",
            setup.reported_events()
        );
        fired += count;
    }
    assert!(fired > 5_000, "{fired}");
}
