//! Erasure of forgotten data, which leaves no bytes in the ledger's files.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use roaring::RoaringBitmap;

use super::*;
use crate::conformance::scene::purge_order;
use crate::{
    AdditionMode, Bounds, ConsentBlockBuilder, ConsentStore as _, ForgetOrder, Forgetting as _, OptOut, OptOutReach,
    OptOutScope, RowSpan, RunEnd, Settlement, StateCounts, SuppressionList as _,
};
use campaign_core::domain::{ConsentCells, FrequencyCap, Row};

/// The personal data of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PersonalData {
    Numbers,
    /// Texts of the gateway, a recipient or an operator, which can contain a number.
    Texts,
    Nothing,
}

/// All tables of the ledger. A new table must be added here, and `sql/forgetting.rs` must erase its personal data.
const TABLE_CONTENTS: [(&str, PersonalData); 33] = [
    ("accounts", PersonalData::Nothing),
    ("approval_rules", PersonalData::Nothing),
    ("approval_uses", PersonalData::Nothing),
    ("approvals", PersonalData::Nothing),
    ("backup", PersonalData::Nothing),
    ("blocks", PersonalData::Nothing),
    ("consents", PersonalData::Texts),
    ("contacts", PersonalData::Numbers),
    ("contacts_kept", PersonalData::Nothing),
    ("days", PersonalData::Nothing),
    ("envelopes", PersonalData::Numbers),
    ("events", PersonalData::Texts),
    ("figures", PersonalData::Nothing),
    ("forgetting", PersonalData::Nothing),
    ("forgotten_rows", PersonalData::Nothing),
    ("guarded", PersonalData::Nothing),
    ("hooks", PersonalData::Nothing),
    ("left_out", PersonalData::Nothing),
    ("identity", PersonalData::Nothing),
    ("notifications", PersonalData::Texts),
    ("occurrences", PersonalData::Nothing),
    ("opt_out_list", PersonalData::Nothing),
    ("opt_outs", PersonalData::Numbers),
    ("orders", PersonalData::Nothing),
    ("plans", PersonalData::Nothing),
    ("profiles", PersonalData::Nothing),
    ("questions", PersonalData::Texts),
    ("receipts", PersonalData::Texts),
    ("repeat_key", PersonalData::Nothing),
    ("repeats", PersonalData::Nothing),
    ("runs", PersonalData::Texts),
    ("schedules", PersonalData::Nothing),
    ("spending", PersonalData::Nothing),
];

/// Whether any file in the ledger's folder contains one of these byte sequences.
fn is_in_any_file(scene: &SqliteScene, needles: &[Vec<u8>]) -> bool {
    let files = fs::read_dir(scene.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).any(|path| {
        let bytes = fs::read(path).unwrap();
        needles.iter().any(|needle| bytes.windows(needle.len()).any(|window| window == needle))
    })
}

/// The phone number of a row in each encoding: as text, as an integer and as in packed records.
fn encode_number(row: u32) -> Vec<Vec<u8>> {
    let number = phone(row).to_u64();
    let text = number.to_string().into_bytes();
    let integer = number.to_be_bytes()[2..].to_vec();
    vec![text, integer, postcard::to_stdvec(&number).unwrap()]
}

#[tokio::test]
async fn every_table_is_classified_by_the_personal_data_it_holds() {
    let scene = SqliteScene::new().await;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '\\_sqlx%' ESCAPE '\\'",
    )
    .fetch_all(&scene.ledger.readers)
    .await
    .unwrap();
    let known: BTreeMap<&str, PersonalData> = TABLE_CONTENTS.into_iter().collect();
    for table in &tables {
        assert!(
            known.contains_key(table.as_str()),
            "{table}: add its personal data to this list, and erase the data in `sql/forgetting.rs`"
        );
    }
    assert_eq!(tables.len(), known.len(), "{tables:?}");
}

#[tokio::test]
async fn forgotten_number_leaves_no_bytes_in_ledger_files() {
    let scene = SqliteScene::new().await;
    for envelope in 1..=3 {
        scene.begin_envelope(envelope, scene.lease).await;
    }
    let rejected = OperationOutcome::Rejected { error: format!("no route to {}", phone(3)) };
    let evidence = Some(format!("{{\"phone\": {}}}", phone(3)));
    let settlement = Settlement {
        opt_outs: Vec::new(),
        run: scene.run.key,
        envelope: 1,
        outcomes: vec![accepted(), rejected],
        evidence,
    };
    scene.ledger.settle_envelope(settlement).await.unwrap();
    for envelope in 2..=3 {
        scene.settle_envelope(envelope, [accepted(), accepted()]).await;
    }
    let opt_out = OptOut {
        who: phone(3).into(),
        scope: OptOutScope::Marketing,
        reach: OptOutReach::AllGateways,
        reason: format!("{} called", phone(3)).into(),
        source: "olena".into(),
        at: Timestamp::now(),
    };
    scene.ledger.add_opt_outs(vec![opt_out.clone()].into(), AdditionMode::Add).await.unwrap();
    let mut consents = ConsentBlockBuilder::default();
    for row in [3, 4] {
        let source = format!("call from {}", phone(row));
        consents.add_row(Row::new(row), ConsentCells { source: &source, ..ConsentCells::default() });
    }
    scene.ledger.update_runs(vec![scene.run.key], RunUpdate::Consents([consents.build()].into())).await.unwrap();
    assert!(
        encode_number(3).into_iter().all(|encoding| is_in_any_file(&scene, &[encoding])),
        "every encoding is found before the number is forgotten"
    );
    let rows = vec![(scene.run.key, RoaringBitmap::from([3]))];
    scene.ledger.forget_number(ForgetOrder { phone: phone(3), rows, cancelled_in: Vec::new(), opt_out }).await.unwrap();
    scene.ledger.overwrite_remains(&[]).await.unwrap();
    assert!(!is_in_any_file(&scene, &encode_number(3)));
    assert!(is_in_any_file(&scene, &encode_number(4)), "the other rows exist");
    let span = RowSpan { first: Row::new(2), last: Row::new(9) };
    let evidence = scene.ledger.load_consents(scene.run.key, span).await.unwrap();
    assert_eq!(evidence.iter().map(|evidence| evidence.row).collect::<Vec<_>>(), [Row::new(4)]);
    scene.ledger.close().await;
    assert!(!is_in_any_file(&scene, &encode_number(3)));
}

#[tokio::test]
async fn purged_run_leaves_no_numbers_in_ledger_files() {
    let scene = SqliteScene::new().await;
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [accepted(), rejected()]).await;
    let end = RunEnd { stop_reason: None, stop: None, ..run_end() };
    scene.ledger.end_run(scene.lease, end).await.unwrap();
    // A cap makes the ledger store contact times.
    let caps = vec![FrequencyCap { messages: 1, period: Duration::from_secs(60) }];
    let other = SqliteLedger::open(&scene.folder.path().join("ledger"), Timestamp::now).await.unwrap();
    let other_scene = Scene::with_run(Arc::new(other), &NewRun { campaign: "other".into(), ..new_run(2) }).await;
    let bounds = Some(Arc::new(Bounds { caps, ..Bounds::default() }));
    other_scene.ledger.begin_envelope(Intent { bounds, ..other_scene.new_intent(4, other_scene.lease) }).await.unwrap();
    let numbers = [2, 3].map(encode_number).concat();
    assert!(is_in_any_file(&scene, &numbers), "the search patterns are valid");
    other_scene.ledger.close().await;
    let counted = scene.reload_run().await;
    scene.ledger.purge_run(purge_order(counted, StateCounts::default(), 0)).await.unwrap();
    let purged = scene.reload_run().await;
    scene.ledger.overwrite_remains(&[purged]).await.unwrap();
    assert!(!is_in_any_file(&scene, &numbers));
    assert!(is_in_any_file(&scene, &encode_number(8)), "the numbers of the other run remain");
}

#[tokio::test]
async fn free_space_of_an_earlier_version_is_overwritten() {
    let scene = SqliteScene::new().await;
    scene.begin_envelope(1, scene.lease).await;
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
    let deleted = [b"380501234999".to_vec()];
    assert!(is_in_any_file(&scene, &deleted), "the search pattern is valid");
    let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    let opt_out = OptOut {
        who: phone(2).into(),
        scope: OptOutScope::Marketing,
        reach: OptOutReach::AllGateways,
        reason: "forgotten".into(),
        source: "olena".into(),
        at: Timestamp::now(),
    };
    ledger
        .forget_number(ForgetOrder { phone: phone(2), rows: Vec::new(), cancelled_in: Vec::new(), opt_out })
        .await
        .unwrap();
    ledger.overwrite_remains(&[]).await.unwrap();
    assert!(!is_in_any_file(&scene, &deleted));
    ledger.close().await;
}
