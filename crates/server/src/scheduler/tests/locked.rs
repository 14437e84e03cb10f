//! Tests of occurrences that wait while another process holds the campaign lock: they fire once, or are skipped.

use super::firing::GuardedStarter;
use crate::scheduler::tests::*;
use campaign_ledger::{Approval, CampaignLock, PlanRecord};

const ONE_TIME_SCHEDULE: &str = "timezone: UTC\nschedule: { at: 2026-12-01 10:00, grace: 10m }";
const FIRED: &str = "2026-12-01T10:00Z\t2026-12-01 10:00";

/// A starter that starts occurrences under the campaign lock, as runs do, after a simulated time for reading the list.
struct LockingStarter {
    ledger: Arc<dyn Ledger>,
    starter: Arc<dyn Starter>,
    reading_time: Duration,
}

impl Starter for LockingStarter {
    fn start_occurrence(
        &self,
        active: ActiveSchedule,
        occurrence: Occurrence,
        interrupt: watch::Receiver<Interrupt>,
    ) -> BoxFuture<'static, Result<RunOutcome, Error>> {
        let (ledger, starter, reading_time) = (Arc::clone(&self.ledger), Arc::clone(&self.starter), self.reading_time);
        Box::pin(async move {
            let (campaign, gateway) = (active.name.clone(), active.gateway.clone());
            let Some(_lock) = ledger.acquire_campaign_lock(&campaign, &active.account).await? else {
                return Err(Error::Busy { campaign, gateway, since: None });
            };
            tokio::time::sleep(reading_time).await;
            starter.start_occurrence(active, occurrence, interrupt).await
        })
    }
}

impl TestSetup {
    fn locking_daemon(&self, starter: Arc<dyn Starter>) -> Daemon {
        let (ledger, reading_time) = (Arc::clone(&self.adapters.ledger), Duration::from_secs(30));
        self.test_daemon(Arc::new(LockingStarter { ledger, starter, reading_time }))
    }

    async fn lock_campaign(&self, active: &ActiveSchedule) -> CampaignLock {
        let lock = self.adapters.ledger.acquire_campaign_lock(&active.name, &active.account).await;
        lock.expect("a ledger").expect("a free campaign")
    }
}

#[tokio::test(start_paused = true)]
async fn occurrence_is_sent_once_if_two_daemons_read_a_long_list() {
    set_clock("2026-12-01T09:59:00Z");
    let setup = TestSetup::new(ONE_TIME_SCHEDULE);
    setup.activate().await.unwrap();
    let daemon = || {
        let starter = setup.fake_starter(Duration::from_secs(5));
        setup.locking_daemon(starter).run_until_shutdown(tokio::time::sleep(Duration::from_secs(3600)))
    };
    let (first, second) = tokio::join!(daemon(), daemon());
    assert!(first.is_ok() && second.is_ok());
    assert_eq!((setup.fired_occurrences(), setup.reported_events()), (vec![FIRED.to_owned()], Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn occurrence_begins_when_a_reconciliation_ends() {
    set_clock("2026-12-01T09:59:00Z");
    let setup = TestSetup::new(ONE_TIME_SCHEDULE);
    let lock = setup.lock_campaign(&setup.activate().await.unwrap()).await;
    let daemon = setup.locking_daemon(setup.fake_starter(Duration::from_secs(1)));
    let reconcile = async {
        tokio::time::sleep(Duration::from_secs(60 + 590)).await;
        assert!(setup.fired_occurrences().is_empty(), "another process holds the campaign lock");
        drop(lock);
        tokio::time::sleep(Duration::from_secs(600)).await;
    };
    daemon.run_until_shutdown(reconcile).await.unwrap();
    assert_eq!((setup.fired_occurrences(), setup.reported_events()), (vec![FIRED.to_owned()], Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn occurrence_is_skipped_if_its_campaign_stays_locked() {
    for (is_sending, reason) in [(false, "missed"), (true, "the campaign was still being sent")] {
        set_clock("2026-12-01T09:59:00Z");
        let setup = TestSetup::new(ONE_TIME_SCHEDULE);
        let lock = setup.lock_campaign(&setup.activate().await.unwrap()).await;
        if is_sending {
            let ledger = &setup.adapters.ledger;
            let run = ledger.create_run(&new_run(), None).await.unwrap().unwrap();
            ledger.open_run(run.key, None, None).await.unwrap();
            ledger.claim_run(&lock, run.key).await.unwrap();
        }
        let daemon = setup.locking_daemon(setup.fake_starter(Duration::from_secs(1)));
        let in_grace = async {
            tokio::time::sleep(Duration::from_secs(60 + 595)).await;
            assert!(setup.reported_events().is_empty(), "it can still begin");
            tokio::time::sleep(Duration::from_secs(10)).await;
            drop(lock);
            tokio::time::sleep(Duration::from_secs(600)).await;
        };
        daemon.run_until_shutdown(in_grace).await.unwrap();
        let skipped = format!("2026-12-01 10:00 skipped after 0: {reason}");
        assert_eq!((setup.fired_occurrences(), setup.reported_events()), (Vec::new(), vec![skipped]));
    }
}

#[tokio::test(start_paused = true)]
async fn approved_occurrence_waits_for_the_campaign_lock() {
    set_clock("2026-12-01T09:59:00Z");
    let setup = TestSetup::new(ONE_TIME_SCHEDULE);
    let active = setup.activate().await.unwrap();
    let daemon = setup.locking_daemon(Arc::new(GuardedStarter(setup.fake_starter(Duration::from_secs(1)))));
    let approve = async {
        tokio::time::sleep(Duration::from_secs(5 * 3600)).await;
        let lock = setup.lock_campaign(&active).await;
        let (digest, at) = ("2026-12-01 10:00".to_owned(), now());
        let (token, by, until) = ("t".to_owned(), "olha".to_owned(), at + SignedDuration::from_hours(1));
        let approval = Approval { token, digest, by, up_to: 3, at, until, standing: false };
        setup.adapters.ledger.store_record(PlanRecord::Approval(approval)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(300)).await;
        drop(lock);
        tokio::time::sleep(Duration::from_secs(300)).await;
    };
    daemon.run_until_shutdown(approve).await.unwrap();
    let waiting = "2026-12-01 10:00 waits for an approval of 2026-12-01 10:00".to_owned();
    assert_eq!((setup.fired_occurrences(), setup.reported_events()), (vec![FIRED.to_owned()], vec![waiting]));
}
