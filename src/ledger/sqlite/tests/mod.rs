//! What the ledger promises, through its port.

mod damage;
mod earlier;
mod events;
mod stored;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::{ConnectOptions, Connection};

use crate::domain::{Endpoint, MsgId, OperationKind, Outcome, Phone, Row};
use crate::ledger::{
    Allowance, Begun, Intent, Ledger, LedgerError, LeftOut, NewRun, Owner, Progress, Run, RunEnd, SentRow, Settlement,
    SqliteLedger, State, StateCounts, StopKind, Wait, Walk,
};

const ME: Owner = Owner(7);

/// A ledger in a folder that goes away, with one open run that `ME` has.
struct Scene {
    ledger: SqliteLedger,
    run: Run,
    folder: tempfile::TempDir,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ledger = SqliteLedger::open(&folder.path().join("ledger"), Timestamp::now).await.unwrap();
        let run = ledger.create_run(&new_run(1)).await.unwrap();
        ledger.open_run(run.key, None).await.unwrap();
        ledger.claim(run.key, ME).await.unwrap();
        Self { ledger, run, folder }
    }

    async fn begin(&self, envelope: u32, owner: Owner) -> Begun {
        self.ledger.begin(self.intent(envelope, owner)).await.unwrap()
    }

    fn intent(&self, envelope: u32, owner: Owner) -> Intent {
        let row = |row| SentRow { row: Row::new(row), phone: phone(row), digest: [row as u8; 8] };
        let rows = vec![row(envelope * 2), row(envelope * 2 + 1)];
        Intent { run: self.run.key, envelope, owner, account: Allowance::new("account", None), rows }
    }

    async fn settle(&self, envelope: u32, outcomes: [Outcome; 2]) {
        let outcomes = outcomes.to_vec();
        self.ledger.settle(Settlement { run: self.run.key, envelope, outcomes, evidence: None }).await.unwrap();
    }

    async fn states(&self, envelope: u32) -> Vec<State> {
        let records = self.ledger.envelopes(self.run.key, envelope..=envelope).await.unwrap();
        let settled = records[0].settled.as_ref();
        settled.map_or_else(Vec::new, |(_, outcomes)| outcomes.iter().map(State::of).collect())
    }
}

fn phone(row: u32) -> Phone {
    Phone::new(380_501_234_000 + u64::from(row)).unwrap()
}

fn new_run(random: u64) -> NewRun {
    let mut left_out = LeftOut::default();
    left_out.insert(Row::new(9), State::Invalid, "too short");
    NewRun {
        campaign: "sale".into(),
        edition: String::new(),
        gateway: "main".into(),
        account: "account".into(),
        endpoint: Endpoint::Async,
        kind: OperationKind::ViberSms,
        live: true,
        round: 1,
        recipients: 10,
        last_row: Row::new(11),
        left_out,
        began_at: Timestamp::now(),
        random,
    }
}

fn run_end() -> RunEnd {
    RunEnd {
        progress: Progress::Finished,
        stopped: Some("asked to stop".into()),
        stop: Some(StopKind::Interrupted(15)),
        counts: StateCounts::default(),
        parts: 12,
        results: Some("results.csv".into()),
        lag: None,
        at: Timestamp::now(),
    }
}

fn accepted() -> Outcome {
    Outcome::Accepted { msg_id: Some(MsgId::Number(5)), parts: Some(2), answer: None }
}

fn rejected() -> Outcome {
    Outcome::Rejected { error: "No route".into() }
}

fn not_sent() -> Outcome {
    Outcome::NotSent { reason: "refused".into() }
}

fn doubt() -> Outcome {
    Outcome::InDoubt { reason: "silence".into() }
}

#[tokio::test]
async fn a_commit_waits_for_the_disk() {
    let scene = Scene::new().await;
    let level = scene.ledger.write(|connection, _| {
        Box::pin(async move { Ok(sqlx::query_scalar::<_, i64>("PRAGMA synchronous").fetch_one(connection).await?) })
    });
    assert_eq!(level.await.unwrap(), 2, "FULL: the log is synced at each commit");
}

#[tokio::test]
async fn an_intent_needs_the_owner_and_no_request_to_stop() {
    let scene = Scene::new().await;
    assert_eq!(scene.begin(1, ME).await, Begun::After(Wait::NONE));
    assert_eq!(scene.begin(2, Owner(8)).await, Begun::NotOwner);
    scene.ledger.request_stop(scene.run.key, true).await.unwrap();
    assert_eq!(scene.begin(2, ME).await, Begun::StopRequested);
    assert_eq!(scene.ledger.envelope_summaries(scene.run.key).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_request_to_stop_outlives_the_taking_of_a_run_until_it_is_taken_back() {
    let scene = Scene::new().await;
    scene.ledger.request_stop(scene.run.key, true).await.unwrap();
    scene.ledger.claim(scene.run.key, ME).await.unwrap();
    assert!(scene.ledger.stop_requested(scene.run.key).await.unwrap());
    assert_eq!(scene.begin(1, ME).await, Begun::StopRequested);
    scene.ledger.request_stop(scene.run.key, false).await.unwrap();
    assert_eq!(scene.begin(1, ME).await, Begun::After(Wait::NONE));
}

#[tokio::test]
async fn taking_a_run_turns_what_was_begun_into_doubt_and_shuts_the_old_owner_out() {
    let scene = Scene::new().await;
    scene.begin(1, ME).await;
    scene.begin(2, ME).await;
    scene.settle(2, [accepted(), rejected()]).await;
    assert_eq!(scene.ledger.claim(scene.run.key, Owner(8)).await.unwrap(), 1);
    assert_eq!(scene.states(1).await, [State::InDoubt, State::InDoubt]);
    assert_eq!(scene.states(2).await, [State::Accepted, State::Rejected]);
    assert_eq!(scene.begin(3, ME).await, Begun::NotOwner);
}

#[tokio::test]
async fn a_late_answer_is_evidence_and_late_proof_of_nothing_sent_is_not() {
    let scene = Scene::new().await;
    scene.begin(1, ME).await;
    scene.ledger.claim(scene.run.key, Owner(8)).await.unwrap();
    scene.settle(1, [accepted(), not_sent()]).await;
    assert_eq!(scene.states(1).await, [State::Accepted, State::InDoubt]);
    scene.settle(1, [rejected(), doubt()]).await;
    assert_eq!(scene.states(1).await, [State::Accepted, State::InDoubt], "what is proven stays");
}

#[tokio::test]
async fn the_guard_knows_every_number_that_may_have_a_message() {
    let scene = Scene::new().await;
    for envelope in 1..=3 {
        scene.begin(envelope, ME).await;
    }
    scene.settle(1, [accepted(), rejected()]).await;
    scene.settle(2, [doubt(), not_sent()]).await;
    let numbers = scene.ledger.numbers_sent_to(&[scene.run.key]).await.unwrap();
    let guarded: Vec<u32> = (2..=7).filter(|&row| numbers.contains(phone(row).get())).collect();
    assert_eq!(guarded, [2, 4, 6, 7], "accepted, in doubt, and an intent without an answer");
}

#[tokio::test]
async fn runs_are_numbered_and_their_identifiers_never_overlap() {
    let scene = Scene::new().await;
    let mut ranges = vec![scene.run.ids];
    for number in 2..=20 {
        // The same random number again and again: the ledger has to find other room.
        let run = scene.ledger.create_run(&new_run(1)).await.unwrap();
        assert_eq!(run.name(), format!("sale@{number}"));
        assert!(ranges.iter().all(|range| !range.overlaps(run.ids)), "{ranges:?} {:?}", run.ids);
        ranges.push(run.ids);
    }
    assert_eq!(scene.ledger.runs().await.unwrap().len(), 1, "a run that was not opened does not show");
}

#[tokio::test]
async fn a_run_reads_back_as_it_was_written() {
    let scene = Scene::new().await;
    let mut counts = StateCounts::default();
    counts.add(State::Accepted, 9);
    counts.add(State::Invalid, 1);
    let end = RunEnd { counts: counts.clone(), ..run_end() };
    scene.ledger.end(scene.run.key, Owner(8), end.clone()).await.unwrap();
    assert_eq!(scene.ledger.runs().await.unwrap()[0].progress, Progress::Open, "only its owner ends a run");
    scene.ledger.end(scene.run.key, ME, end).await.unwrap();
    let run = &scene.ledger.runs().await.unwrap()[0];
    assert_eq!(
        (run.progress, run.stop, run.owner, &run.counts),
        (Progress::Finished, Some(StopKind::Interrupted(15)), None, &Some((counts, 12)))
    );
    assert_eq!((run.endpoint, run.kind), (Endpoint::Async, OperationKind::ViberSms));
    assert_eq!(scene.ledger.left_out(run.key).await.unwrap().in_order().count(), 1);
}

#[tokio::test]
async fn a_rated_account_makes_the_next_envelope_wait_whoever_sends_it() {
    let scene = Scene::new().await;
    let mut intent = scene.intent(1, ME);
    intent.account = Allowance::new("account", Some(0.5));
    assert_eq!(scene.ledger.begin(intent.clone()).await.unwrap(), Begun::After(Wait::NONE));
    intent.envelope = 2;
    let Begun::After(Wait { time: wait, .. }) = scene.ledger.begin(intent).await.unwrap() else { panic!("refused") };
    assert!(wait > Duration::from_secs(3) && wait <= Duration::from_secs(4), "two operations at 0.5/s: {wait:?}");
    scene.ledger.slow_down("other", Some(Duration::from_secs(60))).await.unwrap();
    assert!(scene.ledger.reserve(&Allowance::new("other", None), 1).await.unwrap().time > Duration::from_secs(59));
}

#[tokio::test]
async fn after_a_failed_write_nothing_is_written_any_more() {
    let scene = Scene::new().await;
    let path = scene.folder.path().join("ledger");
    let mut other = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    sqlx::query("DROP TABLE envelopes").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    let failed = scene.ledger.begin(scene.intent(1, ME)).await;
    assert!(matches!(failed, Err(LedgerError::Storage { .. })), "{failed:?}");
    let later = scene.ledger.request_stop(scene.run.key, true).await;
    assert!(matches!(later, Err(LedgerError::Closed)), "{later:?}");
}

#[tokio::test]
async fn changes_that_wait_together_are_all_written() {
    let scene = Arc::new(Scene::new().await);
    let begun = (1..=200).map(|envelope| {
        let scene = Arc::clone(&scene);
        tokio::spawn(async move { scene.begin(envelope, ME).await })
    });
    for begun in futures_util::future::join_all(begun).await {
        assert_eq!(begun.unwrap(), Begun::After(Wait::NONE));
    }
    let summaries = scene.ledger.envelope_summaries(scene.run.key).await.unwrap();
    assert_eq!(summaries.len(), 200);
    assert_eq!((summaries[6].envelope, summaries[6].first, summaries[6].last), (7, Row::new(14), Row::new(15)));
}

#[cfg(unix)]
#[tokio::test]
async fn only_its_owner_can_read_the_ledger() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new().await;
    for file in ["ledger", "ledger-wal", "ledger-shm"] {
        let mode = std::fs::metadata(scene.folder.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[tokio::test]
async fn a_ledger_of_a_newer_version_is_refused() {
    let Scene { ledger, folder, .. } = Scene::new().await;
    drop(ledger);
    let path = folder.path().join("ledger");
    let mut other = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (99, 'later', 1, x'00', 0)";
    sqlx::query(newer).execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    let opened = SqliteLedger::open(&path, Timestamp::now).await.map(|_| ());
    assert!(matches!(opened, Err(LedgerError::TooNew { .. })), "{opened:?}");
}

#[tokio::test]
async fn a_profile_keeps_the_host_of_its_first_use_until_another_is_trusted() {
    let scene = Scene::new().await;
    assert_eq!(scene.ledger.remember_host("main", "a.example").await.unwrap(), "a.example");
    assert_eq!(scene.ledger.remember_host("main", "b.example").await.unwrap(), "a.example");
    scene.ledger.trust_host("main", "b.example").await.unwrap();
    assert_eq!(scene.ledger.remember_host("main", "b.example").await.unwrap(), "b.example");
}

#[tokio::test]
async fn an_account_that_had_its_profiles_name_before_it_is_the_host_alone() {
    for (account, known_as) in [("main@gateway.example", "gateway.example"), ("main", "main"), ("a@b", "a@b")] {
        let folder = tempfile::tempdir().unwrap();
        let ledger = SqliteLedger::open(&folder.path().join("ledger"), Timestamp::now).await.unwrap();
        let run = ledger.create_run(&NewRun { account: account.into(), ..new_run(1) }).await.unwrap();
        ledger.open_run(run.key, None).await.unwrap();
        let run = ledger.runs().await.unwrap().remove(0);
        assert_eq!(run.account, known_as);
        assert!(run.went_through("renamed", known_as) && run.went_through("main", "moved.example"));
        assert!(!run.went_through("renamed", "elsewhere.example"));
    }
}

#[tokio::test]
async fn a_walk_meets_every_envelope_once_and_in_order_whatever_numbers_are_missing() {
    let scene = Scene::new().await;
    let numbers: Vec<u32> = (1..=600).filter(|number| number % 7 != 0 && *number != 257).collect();
    futures_util::future::join_all(numbers.iter().map(|number| scene.begin(*number, ME))).await;
    let (mut walk, mut met) = (Walk::over(&scene.ledger, scene.run.key), Vec::new());
    while let Some(envelope) = walk.next().await.unwrap() {
        met.push(envelope.envelope);
    }
    assert_eq!(met, numbers);
}
