//! Tests of occurrences that wait or are being prepared while the clock is set back: each still begins, and only once.

use std::fs;

use jiff::SignedDuration;

use super::firing::GuardedStarter;
use crate::scheduler::tests::*;
use campaign_ledger::{Approval, PlanRecord};

/// The times to which the clock is set back at ten seconds after 10:00: one after 10:00 and one before 10:00.
const BACK_TO: [&str; 2] = ["2026-12-01T10:00:03Z", "2026-12-01T09:59:50Z"];

const FIRED: [&str; 1] = ["2026-12-01T10:00Z\t2026-12-01 10:00"];

/// Runs a daemon until ten seconds after 10:00, sets the clock back to `earlier_time`, and awaits `action` half a
/// minute later. The daemon then runs for another ten minutes.
async fn run_with_clock_set_back(
    setup: &TestSetup,
    starter: Arc<dyn Starter>,
    earlier_time: &str,
    action: impl Future<Output = ()>,
) {
    let refresh = Duration::from_secs(1);
    let daemon = Daemon { refresh, ..setup.test_daemon(starter) };
    let stop = async {
        tokio::time::sleep(Duration::from_secs(70)).await;
        set_clock(earlier_time);
        tokio::time::sleep(Duration::from_secs(30)).await;
        action.await;
        tokio::time::sleep(Duration::from_secs(600)).await;
    };
    daemon.run_until_shutdown(stop).await.expect("a ledger");
}

fn skipped_occurrences(setup: &TestSetup) -> Vec<String> {
    setup.reported_events().into_iter().filter(|event| event.contains("skipped")).collect()
}

#[tokio::test(start_paused = true)]
async fn occurrence_awaiting_list_begins_when_it_arrives() {
    for back in BACK_TO {
        set_clock("2026-12-01T09:59:00Z");
        let setup = TestSetup::new("timezone: UTC\nschedule: { at: 2026-12-01 10:00, wait_for_file: 2h }");
        setup.activate().await.unwrap();
        let list = setup.folder.path().join("sale.csv");
        let text = fs::read_to_string(&list).unwrap();
        fs::remove_file(&list).unwrap();
        let arrive = async { setup.write_file("sale.csv", &text) };
        run_with_clock_set_back(&setup, setup.fake_starter(Duration::from_secs(1)), back, arrive).await;
        assert_eq!(
            (setup.fired_occurrences(), skipped_occurrences(&setup)),
            (FIRED.map(str::to_owned).to_vec(), Vec::new()),
            "{back}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn occurrence_awaiting_approval_begins_when_approved() {
    for back in BACK_TO {
        set_clock("2026-12-01T09:59:00Z");
        let setup = TestSetup::new("timezone: UTC\nschedule: { at: 2026-12-01 10:00 }");
        setup.activate().await.unwrap();
        let ledger = Arc::clone(&setup.adapters.ledger);
        let approve = async {
            let (token, by, at) = ("t".to_owned(), "olha".to_owned(), now());
            let (digest, until) = ("2026-12-01 10:00".to_owned(), at + SignedDuration::from_hours(1));
            ledger
                .store_record(PlanRecord::Approval(Approval {
                    token,
                    digest,
                    by,
                    up_to: 3,
                    at,
                    until,
                    standing: false,
                }))
                .await
                .unwrap();
        };
        run_with_clock_set_back(
            &setup,
            Arc::new(GuardedStarter(setup.fake_starter(Duration::from_secs(1)))),
            back,
            approve,
        )
        .await;
        assert_eq!(
            (setup.fired_occurrences(), skipped_occurrences(&setup)),
            (FIRED.map(str::to_owned).to_vec(), Vec::new()),
            "{back}"
        );
    }
}

/// A starter that prepares for a minute before it records anything.
struct SlowStarter(Arc<FakeStarter>);

impl Starter for SlowStarter {
    fn start_occurrence(
        &self,
        active: ActiveSchedule,
        occurrence: Occurrence,
        interrupt: watch::Receiver<Interrupt>,
    ) -> BoxFuture<'static, Result<RunOutcome, Error>> {
        let starter = Arc::clone(&self.0);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            starter.start_occurrence(active, occurrence, interrupt).await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn occurrence_in_preparation_is_not_skipped() {
    for back in BACK_TO {
        set_clock("2026-12-01T09:59:00Z");
        // The 10:01 occurrence is due before the first one has finished.
        let setup = TestSetup::new("timezone: UTC\nschedule: { cron: \"0,1 10 1 12 *\", ends: 2026-12-31 }");
        setup.activate().await.unwrap();
        run_with_clock_set_back(
            &setup,
            Arc::new(SlowStarter(setup.fake_starter(Duration::from_secs(60)))),
            back,
            async {},
        )
        .await;
        let busy = "2026-12-01 10:01 skipped after 0: the campaign was still being sent";
        assert_eq!(
            (setup.fired_occurrences(), skipped_occurrences(&setup)),
            (FIRED.map(str::to_owned).to_vec(), vec![busy.to_owned()]),
            "{back}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn occurrence_that_is_in_the_future_again_does_not_block_others() {
    set_clock("2026-12-01T09:00:00Z");
    let setup = TestSetup::new("timezone: UTC\nschedule: { every: day 10:00, wait_for_file: 2h }");
    let yaml = fs::read_to_string(setup.folder.path().join("sale.yaml")).unwrap();
    setup.write_file("sale.yaml", &yaml.replace("file: sale.csv", "file: \"daily-{{ today }}.csv\""));
    setup.activate().await.unwrap();
    // It is the first of the month, but the clock is ten days ahead when the daemon starts.
    set_clock("2026-12-11T09:59:30Z");
    let daemon =
        Daemon { refresh: Duration::from_secs(1), ..setup.test_daemon(setup.fake_starter(Duration::from_secs(1))) };
    let stop = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        set_clock("2026-12-01T09:58:00Z");
        setup.write_file("daily-2026-12-01.csv", "phone\n+380500000001\n");
        tokio::time::sleep(Duration::from_secs(600)).await;
        set_clock("2026-12-11T09:59:00Z");
        setup.write_file("daily-2026-12-11.csv", "phone\n+380500000001\n");
        tokio::time::sleep(Duration::from_secs(600)).await;
    };
    daemon.run_until_shutdown(stop).await.unwrap();
    let days = setup.fired_occurrences().into_iter().map(|fired| fired[..10].to_owned()).collect::<Vec<_>>();
    assert_eq!(days, ["2026-12-01", "2026-12-11"], "{:?}", setup.reported_events());
}
