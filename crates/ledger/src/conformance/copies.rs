//! Conformance tests of frozen copies: they read back unchanged, and interrupted starts leave no files behind.

use std::io::Read as _;

use super::scene::*;
use crate::{CampaignLock, Copies, CopiesPurpose, LedgerError, Run, RunId, StrayCopies};

/// Freezes copies for a run of the locked campaign.
async fn freeze_copies(scene: &Scene, lock: &CampaignLock, run: &Run, [inputs, list]: [&str; 2]) {
    let mut copies = scene.ledger.prepare_copies(CopiesPurpose::NewRun(lock)).await.unwrap();
    let mut writer = copies.list_writer().unwrap();
    // Real lists arrive in pieces from their source, too.
    list.as_bytes().chunks(3).for_each(|piece| writer.write_all(piece).unwrap());
    writer.flush().unwrap();
    drop(writer);
    copies.freeze(inputs.as_bytes().to_vec(), run).await.unwrap();
}

fn read_copies(copies: &Copies) -> [String; 2] {
    let mut list = String::new();
    copies.open_list().unwrap().read_to_string(&mut list).unwrap();
    [String::from_utf8(copies.inputs().to_vec()).unwrap(), list]
}

pub(super) async fn copies_can_be_replaced_repeatedly(scene: Scene) {
    freeze_copies(&scene, &scene.lock, &scene.run, ["before", "phone\n380501234567\n"]).await;
    let before = scene.ledger.load_copies(&scene.run).await.unwrap();
    for inputs in ["once", "twice"] {
        let mut replacement = scene.ledger.prepare_copies(CopiesPurpose::Replacement(&scene.run)).await.unwrap();
        replacement.list_writer().unwrap().write_all(b"phone\nforgotten\n").unwrap();
        replacement.freeze(inputs.as_bytes().to_vec(), &scene.run).await.unwrap();
        assert_eq!(read_copies(&scene.ledger.load_copies(&scene.run).await.unwrap()), [inputs, "phone\nforgotten\n"]);
    }
    assert_eq!(before.inputs(), b"before");
    // Abandoned copies change nothing.
    let mut copies = scene.ledger.prepare_copies(CopiesPurpose::Replacement(&scene.run)).await.unwrap();
    copies.list_writer().unwrap().write_all(b"phone\n").unwrap();
    drop(copies);
    assert_eq!(read_copies(&scene.ledger.load_copies(&scene.run).await.unwrap()), ["twice", "phone\nforgotten\n"]);
    assert_eq!(scene.ledger.list_stray_copies().await.unwrap(), []);
}

/// A run that is missing from the ledger.
fn unknown_run(scene: &Scene) -> Run {
    Run { key: RunId(99), number: 99, ..scene.run.clone() }
}

pub(super) async fn copies_read_back_byte_for_byte_each_time(scene: Scene) {
    let next = scene.ledger.create_run(&new_run(2), None).await.unwrap().expect("a run");
    freeze_copies(&scene, &scene.lock, &scene.run, ["{\r\n\u{feff}}", "phone\r\n1\n\n"]).await;
    freeze_copies(&scene, &scene.lock, &next, ["", ""]).await;
    let copies = scene.ledger.load_copies(&scene.run).await.unwrap();
    let mut start = [0; 4];
    let mut first = copies.open_list().unwrap();
    first.read_exact(&mut start).unwrap();
    assert_eq!(read_copies(&copies), ["{\r\n\u{feff}}", "phone\r\n1\n\n"], "each reader starts at the beginning");
    let mut rest = String::new();
    first.read_to_string(&mut rest).unwrap();
    assert_eq!((&start, rest.as_str()), (b"phon", "e\r\n1\n\n"));
    assert_eq!(read_copies(&scene.ledger.load_copies(&next).await.unwrap()), ["", ""]);
}

pub(super) async fn missing_copies_are_reported_with_their_location(scene: Scene) {
    let result = scene.ledger.load_copies(&scene.run).await;
    let Err(LedgerError::CopiesUnreadable { place, reason }) = &result else { panic!("{result:?}") };
    assert!(place.contains("sale@1") && !reason.is_empty(), "{result:?}");
}

pub(super) async fn abandoned_start_leaves_only_the_copies_of_others(scene: Scene) {
    let other = scene.ledger.acquire_campaign_lock("sale", "other").await.unwrap().expect("the campaign is not locked");
    let mut other_copies = scene.ledger.prepare_copies(CopiesPurpose::NewRun(&other)).await.unwrap();
    other_copies.list_writer().unwrap().write_all(b"theirs").unwrap();
    // A start that is refused, and a start whose process is killed.
    for is_killed in [false, true] {
        let mut abandoned = scene.ledger.prepare_copies(CopiesPurpose::NewRun(&scene.lock)).await.unwrap();
        abandoned.list_writer().unwrap().write_all(b"a much longer list").unwrap();
        if is_killed {
            std::mem::forget(abandoned);
        }
    }
    assert!(
        scene.ledger.load_copies(&scene.run).await.is_err()
            && scene.ledger.list_stray_copies().await.unwrap().is_empty()
    );
    freeze_copies(&scene, &scene.lock, &scene.run, ["mine", "phone\n"]).await;
    assert_eq!(read_copies(&scene.ledger.load_copies(&scene.run).await.unwrap()), ["mine", "phone\n"]);
    let next = scene.ledger.create_run(&new_run(2), None).await.unwrap().expect("a run");
    other_copies.freeze(b"other".to_vec(), &next).await.unwrap();
    assert_eq!(read_copies(&scene.ledger.load_copies(&next).await.unwrap()), ["other", "theirs"]);
}

pub(super) async fn stray_copies_are_listed_until_set_aside(scene: Scene) {
    freeze_copies(&scene, &scene.lock, &scene.run, ["known", "phone\n"]).await;
    assert_eq!(scene.ledger.list_stray_copies().await.unwrap(), []);
    let unknown = unknown_run(&scene);
    freeze_copies(&scene, &scene.lock, &unknown, ["lost", "phone\n"]).await;
    let strays = scene.ledger.list_stray_copies().await.unwrap();
    let [StrayCopies { run, place, inputs }] = strays.as_slice() else { panic!("{strays:?}") };
    assert_eq!((run.as_str(), inputs.as_deref()), ("sale@99", Some(&b"lost"[..])));
    assert!(place.contains("sale@99"), "{place}");
    let aside = scene.ledger.set_copies_aside(run).await.unwrap();
    assert!(aside != *place && scene.ledger.list_stray_copies().await.unwrap().is_empty(), "{aside}");
    assert!(scene.ledger.load_copies(&unknown).await.is_err());
    assert_eq!(read_copies(&scene.ledger.load_copies(&scene.run).await.unwrap()), ["known", "phone\n"]);
}

pub(super) async fn run_has_its_own_copies_despite_strays_with_its_name(scene: Scene) {
    // After the loss of a ledger, run names are assigned again.
    for inputs in ["before", "now"] {
        freeze_copies(&scene, &scene.lock, &scene.run, [inputs, "phone\n"]).await;
    }
    assert_eq!(read_copies(&scene.ledger.load_copies(&scene.run).await.unwrap()), ["now", "phone\n"]);
}
