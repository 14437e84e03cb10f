//! Blocks during a concurrent claim, and in a restored older copy of the ledger.

use super::*;
use crate::conformance::scene::{shared_run, single_intent};
use crate::{BlockRequest, Permit};

#[tokio::test]
async fn block_drawn_during_a_claim_stays_with_its_process() {
    let scene = SqliteScene::new().await;
    let ended = scene.ledger.draw_block(&shared_run(), BlockRequest::for_rows(1)).await.unwrap().into_block().unwrap();
    let run = ended.run.clone();
    drop(ended);
    // The first part of a claim, before its transaction.
    let (known, vacant, _locks) = scene.ledger.lock_vacant_places(run.key).await.unwrap();
    // Another process draws at a new place in the meantime.
    let alive = scene.ledger.draw_block(&shared_run(), BlockRequest::for_rows(1)).await.unwrap().into_block().unwrap();
    assert!(matches!(
        scene.ledger.begin_envelope(single_intent(alive.lease, alive.lease.rows.first.get())).await.unwrap(),
        Permit::Granted { .. }
    ));
    // Now the same check within the transaction of the claim.
    let claim = scene.ledger.claim_except_occupied(&known, vacant).await.unwrap();
    assert_eq!(claim.in_doubt, 0, "a living process keeps its intents");
    assert!(
        matches!(
            scene.ledger.begin_envelope(single_intent(alive.lease, alive.lease.rows.first.get())).await.unwrap(),
            Permit::Granted { .. }
        ),
        "not lost"
    );
}

#[tokio::test]
async fn restored_ledger_reuses_no_block_identifiers() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("ledger"), folder.path().join("copy"));
    let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    drop(ledger.draw_block(&shared_run(), BlockRequest::for_rows(1)).await.unwrap().into_block().unwrap());
    ledger.close().await;
    std::fs::copy(&path, &copy).unwrap();
    let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    let block = ledger.draw_block(&shared_run(), BlockRequest::for_rows(1)).await.unwrap().into_block().unwrap();
    let id = block.run.message_id(block.lease.rows.first, None);
    drop(block);
    ledger.close().await;
    std::fs::copy(&copy, &path).unwrap();
    let (ledger, refusal) = SqliteLedger::open_accepted(&path, Timestamp::now).await.unwrap();
    assert!(refusal.is_some());
    let block = ledger.draw_block(&shared_run(), BlockRequest::for_rows(1)).await.unwrap().into_block().unwrap();
    assert_ne!(block.run.message_id(block.lease.rows.first, None), id);
}
