//! What happens to blocks while others come, and when an older copy of the ledger is put back.

use super::*;
use crate::ledger::conformance::scene::{shared_run, single_intent};
use crate::ledger::{BlockRequest, Permit};

#[tokio::test]
async fn who_comes_while_a_shared_run_is_being_taken_keeps_the_own_block() {
    let scene = Scene::new().await;
    let ended = scene.ledger.draw(&shared_run(), BlockRequest::rows(1)).await.unwrap().block().unwrap();
    let run = ended.run.clone();
    drop(ended);
    // What taking it does before its transaction.
    let (known, shut, _locks) = scene.ledger.shut(run.key).await.unwrap();
    // Somebody comes meanwhile, to a place that nobody was ever at.
    let living = scene.ledger.draw(&shared_run(), BlockRequest::rows(1)).await.unwrap().block().unwrap();
    assert!(matches!(
        scene.ledger.begin(single_intent(living.lease, living.lease.rows.first.get())).await.unwrap(),
        Permit::Granted { .. }
    ));
    // Its transaction.
    let claim = scene.ledger.take(&known, shut).await.unwrap();
    assert_eq!(claim.doubtful, 0, "nobody's living work is called doubt");
    assert!(
        matches!(
            scene.ledger.begin(single_intent(living.lease, living.lease.rows.first.get())).await.unwrap(),
            Permit::Granted { .. }
        ),
        "not lost"
    );
}

#[tokio::test]
async fn an_older_copy_of_the_ledger_gives_no_identifier_of_a_block_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("ledger"), folder.path().join("copy"));
    let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    drop(ledger.draw(&shared_run(), BlockRequest::rows(1)).await.unwrap().block().unwrap());
    ledger.close().await;
    std::fs::copy(&path, &copy).unwrap();
    let ledger = SqliteLedger::open(&path, Timestamp::now).await.unwrap();
    let block = ledger.draw(&shared_run(), BlockRequest::rows(1)).await.unwrap().block().unwrap();
    let given = block.run.id(block.lease.rows.first, None);
    drop(block);
    ledger.close().await;
    std::fs::copy(&copy, &path).unwrap();
    let (ledger, refused) = SqliteLedger::accept(&path, Timestamp::now).await.unwrap();
    assert!(refused.is_some());
    let block = ledger.draw(&shared_run(), BlockRequest::rows(1)).await.unwrap().block().unwrap();
    assert_ne!(block.run.id(block.lease.rows.first, None), given);
}
