//! Copies: what a run is sent from comes back as it was given, and nothing of a start that never began.

use std::io::Read as _;

use super::scene::*;
use crate::ledger::{Copies, Hold, Ledger, LedgerError, Run, RunId, StrayCopies};

/// Freezes these as the copies of a run of what is held.
async fn freeze<L: Ledger>(scene: &Scene<L>, hold: &Hold, run: &Run, [inputs, list]: [&str; 2]) {
    let mut copies = scene.ledger.prepare_copies(hold).await.unwrap();
    let mut writer = copies.list().unwrap();
    // In pieces, as a list is read.
    list.as_bytes().chunks(3).for_each(|piece| writer.write_all(piece).unwrap());
    writer.flush().unwrap();
    drop(writer);
    copies.freeze(inputs.as_bytes().to_vec(), run).await.unwrap();
}

fn read(copies: &Copies) -> [String; 2] {
    let mut list = String::new();
    copies.list().unwrap().read_to_string(&mut list).unwrap();
    [String::from_utf8(copies.inputs().to_vec()).unwrap(), list]
}

pub(super) async fn copies_take_the_place_of_others_as_often_as_wanted<L: Ledger>(scene: Scene<L>) {
    freeze(&scene, &scene.hold, &scene.run, ["before", "phone\n380501234567\n"]).await;
    let before = scene.ledger.copies(&scene.run).await.unwrap();
    for inputs in ["once", "twice"] {
        let mut others = scene.ledger.prepare_other_copies(&scene.run).await.unwrap();
        others.list().unwrap().write_all(b"phone\nforgotten\n").unwrap();
        others.freeze(inputs.as_bytes().to_vec(), &scene.run).await.unwrap();
        assert_eq!(read(&scene.ledger.copies(&scene.run).await.unwrap()), [inputs, "phone\nforgotten\n"]);
    }
    assert_eq!(before.inputs(), b"before");
    // One that never began changes nothing.
    let mut none = scene.ledger.prepare_other_copies(&scene.run).await.unwrap();
    none.list().unwrap().write_all(b"phone\n").unwrap();
    drop(none);
    assert_eq!(read(&scene.ledger.copies(&scene.run).await.unwrap()), ["twice", "phone\nforgotten\n"]);
    assert_eq!(scene.ledger.stray_copies().await.unwrap(), []);
}

/// A run that the ledger knows nothing of.
fn unknown<L>(scene: &Scene<L>) -> Run {
    Run { key: RunId(99), number: 99, ..scene.run.clone() }
}

pub(super) async fn copies_come_back_byte_for_byte_as_often_as_they_are_opened<L: Ledger>(scene: Scene<L>) {
    let next = scene.ledger.create_run(&new_run(2)).await.unwrap();
    freeze(&scene, &scene.hold, &scene.run, ["{\r\n\u{feff}}", "phone\r\n1\n\n"]).await;
    freeze(&scene, &scene.hold, &next, ["", ""]).await;
    let copies = scene.ledger.copies(&scene.run).await.unwrap();
    let mut begun = [0; 4];
    let mut first = copies.list().unwrap();
    first.read_exact(&mut begun).unwrap();
    assert_eq!(read(&copies), ["{\r\n\u{feff}}", "phone\r\n1\n\n"], "each from its beginning");
    let mut rest = String::new();
    first.read_to_string(&mut rest).unwrap();
    assert_eq!((&begun, rest.as_str()), (b"phon", "e\r\n1\n\n"));
    assert_eq!(read(&scene.ledger.copies(&next).await.unwrap()), ["", ""]);
}

pub(super) async fn a_run_that_was_not_frozen_has_no_copies_and_that_says_where<L: Ledger>(scene: Scene<L>) {
    let refused = scene.ledger.copies(&scene.run).await;
    let Err(LedgerError::Copies { place, reason }) = &refused else { panic!("{refused:?}") };
    assert!(place.contains("sale@1") && !reason.is_empty(), "{refused:?}");
}

pub(super) async fn nothing_is_left_of_a_start_that_never_began_and_nobody_elses_are_touched<L: Ledger>(
    scene: Scene<L>,
) {
    let other = scene.ledger.hold("sale", "other").await.unwrap().expect("nobody has it");
    let mut theirs = scene.ledger.prepare_copies(&other).await.unwrap();
    theirs.list().unwrap().write_all(b"theirs").unwrap();
    // One that was refused, and one whose process was killed.
    for killed in [false, true] {
        let mut left = scene.ledger.prepare_copies(&scene.hold).await.unwrap();
        left.list().unwrap().write_all(b"a much longer list").unwrap();
        if killed {
            std::mem::forget(left);
        }
    }
    assert!(scene.ledger.copies(&scene.run).await.is_err() && scene.ledger.stray_copies().await.unwrap().is_empty());
    freeze(&scene, &scene.hold, &scene.run, ["mine", "phone\n"]).await;
    assert_eq!(read(&scene.ledger.copies(&scene.run).await.unwrap()), ["mine", "phone\n"]);
    let next = scene.ledger.create_run(&new_run(2)).await.unwrap();
    theirs.freeze(b"other".to_vec(), &next).await.unwrap();
    assert_eq!(read(&scene.ledger.copies(&next).await.unwrap()), ["other", "theirs"]);
}

pub(super) async fn copies_of_runs_that_the_ledger_does_not_have_are_told_until_they_are_put_aside<L: Ledger>(
    scene: Scene<L>,
) {
    freeze(&scene, &scene.hold, &scene.run, ["known", "phone\n"]).await;
    assert_eq!(scene.ledger.stray_copies().await.unwrap(), []);
    let lost = unknown(&scene);
    freeze(&scene, &scene.hold, &lost, ["lost", "phone\n"]).await;
    let strays = scene.ledger.stray_copies().await.unwrap();
    let [StrayCopies { run, place, inputs }] = strays.as_slice() else { panic!("{strays:?}") };
    assert_eq!((run.as_str(), inputs.as_deref()), ("sale@99", Some(&b"lost"[..])));
    assert!(place.contains("sale@99"), "{place}");
    let aside = scene.ledger.put_copies_aside(run).await.unwrap();
    assert!(aside != *place && scene.ledger.stray_copies().await.unwrap().is_empty(), "{aside}");
    assert!(scene.ledger.copies(&lost).await.is_err());
    assert_eq!(read(&scene.ledger.copies(&scene.run).await.unwrap()), ["known", "phone\n"]);
}

pub(super) async fn a_run_has_its_own_copies_although_another_ledger_left_some_under_its_name<L: Ledger>(
    scene: Scene<L>,
) {
    // A ledger that was lost gives a run the same name again.
    for inputs in ["before", "now"] {
        freeze(&scene, &scene.hold, &scene.run, [inputs, "phone\n"]).await;
    }
    assert_eq!(read(&scene.ledger.copies(&scene.run).await.unwrap()), ["now", "phone\n"]);
}
