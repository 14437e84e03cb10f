//! What is forgotten is in no byte of the ledger's files.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use roaring::RoaringBitmap;

use super::*;
use crate::domain::Cap;
use crate::ledger::{
    Bounds, ForgetOrder, Forgetting as _, OptOut, Reach, RunEnd, Scope, Settlement, StateCounts, SuppressionList as _,
};

/// What a table holds of people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Numbers,
    /// What the gateway, the recipient or somebody here said, in which a number may stand.
    Words,
    Nothing,
}

/// The tables of the ledger. A new one stands here; `sqlite/forgetting` takes a person out of each that holds anything of
/// one.
const TABLES: [(&str, Holds); 32] = [
    ("accounts", Holds::Nothing),
    ("approval_rules", Holds::Nothing),
    ("approval_uses", Holds::Nothing),
    ("approvals", Holds::Nothing),
    ("backup", Holds::Nothing),
    ("blocks", Holds::Nothing),
    ("contacts", Holds::Numbers),
    ("contacts_kept", Holds::Nothing),
    ("days", Holds::Nothing),
    ("envelopes", Holds::Numbers),
    ("events", Holds::Words),
    ("figures", Holds::Nothing),
    ("forgetting", Holds::Nothing),
    ("forgotten_rows", Holds::Nothing),
    ("guarded", Holds::Nothing),
    ("hooks", Holds::Nothing),
    ("left_out", Holds::Nothing),
    ("identity", Holds::Nothing),
    ("notifications", Holds::Words),
    ("occurrences", Holds::Nothing),
    ("opt_out_list", Holds::Nothing),
    ("opt_outs", Holds::Numbers),
    ("orders", Holds::Nothing),
    ("plans", Holds::Nothing),
    ("profiles", Holds::Nothing),
    ("questions", Holds::Words),
    ("receipts", Holds::Words),
    ("repeat_key", Holds::Nothing),
    ("repeats", Holds::Nothing),
    ("runs", Holds::Words),
    ("schedules", Holds::Nothing),
    ("spending", Holds::Nothing),
];

/// Whether any file beside the ledger has one of these.
fn is_anywhere(scene: &Scene, needles: &[Vec<u8>]) -> bool {
    let files = fs::read_dir(scene.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).any(|path| {
        let bytes = fs::read(path).unwrap();
        needles.iter().any(|needle| bytes.windows(needle.len()).any(|window| window == needle))
    })
}

/// A number as texts, numbers and packed records have it.
fn spellings(row: u32) -> Vec<Vec<u8>> {
    let number = phone(row).get();
    let text = number.to_string().into_bytes();
    let whole = number.to_be_bytes()[2..].to_vec();
    vec![text, whole, postcard::to_stdvec(&number).unwrap()]
}

#[tokio::test]
async fn every_table_is_known_to_hold_something_of_people_or_nothing() {
    let scene = Scene::new().await;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '\\_sqlx%' ESCAPE '\\'",
    )
    .fetch_all(&scene.ledger.readers)
    .await
    .unwrap();
    let known: BTreeMap<&str, Holds> = TABLES.into_iter().collect();
    for table in &tables {
        assert!(
            known.contains_key(table.as_str()),
            "{table}: what does it hold of a person? It stands in this list, and what holds anything is dealt with in \
             `sqlite/forgetting`"
        );
    }
    assert_eq!(tables.len(), known.len(), "{tables:?}");
}

#[tokio::test]
async fn no_byte_of_a_forgotten_number_is_left_in_the_files_of_the_ledger() {
    let scene = Scene::new().await;
    for envelope in 1..=3 {
        scene.begin(envelope, scene.mine).await;
    }
    let told = Outcome::Rejected { error: format!("no route to {}", phone(3)) };
    let evidence = Some(format!("{{\"phone\": {}}}", phone(3)));
    let settlement = Settlement { run: scene.run.key, envelope: 1, outcomes: vec![accepted(), told], evidence };
    scene.ledger.settle(settlement).await.unwrap();
    for envelope in 2..=3 {
        scene.settle(envelope, [accepted(), accepted()]).await;
    }
    let opt_out = OptOut {
        who: phone(3).into(),
        scope: Scope::Everything,
        reach: Reach::AllGateways,
        reason: format!("{} called", phone(3)).into(),
        source: "olena".into(),
        at: Timestamp::now(),
    };
    scene.ledger.suppress(vec![opt_out.clone()]).await.unwrap();
    assert!(
        spellings(3).into_iter().all(|spelling| is_anywhere(&scene, &[spelling])),
        "it is there as it is looked for"
    );
    let rows = vec![(scene.run.key, RoaringBitmap::from([3]))];
    scene.ledger.forget(ForgetOrder { phone: phone(3), rows, opt_out }).await.unwrap();
    scene.ledger.sweep().await.unwrap();
    assert!(!is_anywhere(&scene, &spellings(3)));
    assert!(is_anywhere(&scene, &spellings(4)), "the others are there");
    scene.ledger.close().await;
    assert!(!is_anywhere(&scene, &spellings(3)));
}

#[tokio::test]
async fn no_byte_of_the_numbers_of_a_purged_run_is_left_in_the_files_of_the_ledger() {
    let scene = Scene::new().await;
    scene.begin(1, scene.mine).await;
    scene.settle(1, [accepted(), rejected()]).await;
    let end = RunEnd { stopped: None, stop: None, ..run_end() };
    scene.ledger.end(scene.mine, end).await.unwrap();
    // A cap has the ledger keep when numbers got messages.
    let caps = vec![Cap { messages: 1, period: Duration::from_secs(60) }];
    let other = SqliteLedger::open(&scene.folder.path().join("ledger"), Timestamp::now).await.unwrap();
    let beside = Parts::of(other, &NewRun { campaign: "other".into(), ..new_run(2) }).await;
    let bounds = Some(Arc::new(Bounds { caps, ..Bounds::default() }));
    beside.ledger.begin(Intent { bounds, ..beside.intent(4, beside.mine) }).await.unwrap();
    let numbers = [2, 3].map(spellings).concat();
    assert!(is_anywhere(&scene, &numbers), "they are there as they are looked for");
    beside.ledger.close().await;
    let counted = scene.now().await;
    scene.ledger.purge(counted, StateCounts::default(), 0).await.unwrap();
    scene.ledger.sweep().await.unwrap();
    assert!(!is_anywhere(&scene, &numbers));
    assert!(is_anywhere(&scene, &spellings(8)), "those of the other run are there");
}

#[tokio::test]
async fn what_an_earlier_version_left_in_free_space_is_overwritten() {
    let scene = Scene::new().await;
    scene.begin(1, scene.mine).await;
    scene.ledger.close().await;
    let path = scene.folder.path().join("ledger");
    let mut earlier = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    for change in [
        "PRAGMA secure_delete = OFF",
        "CREATE TABLE other (text TEXT)",
        "INSERT INTO other VALUES ('380501234999 was here'), ('another')",
        "DELETE FROM other WHERE text LIKE '%here'",
        "PRAGMA wal_checkpoint(TRUNCATE)",
    ] {
        sqlx::query(change).execute(&mut earlier).await.unwrap();
    }
    earlier.close().await.unwrap();
    let left = [b"380501234999".to_vec()];
    assert!(is_anywhere(&scene, &left), "it is there as it is looked for");
    let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    let opt_out = OptOut {
        who: phone(2).into(),
        scope: Scope::Everything,
        reach: Reach::AllGateways,
        reason: "forgotten".into(),
        source: "olena".into(),
        at: Timestamp::now(),
    };
    ledger.forget(ForgetOrder { phone: phone(2), rows: Vec::new(), opt_out }).await.unwrap();
    ledger.sweep().await.unwrap();
    assert!(!is_anywhere(&scene, &left));
    ledger.close().await;
}
