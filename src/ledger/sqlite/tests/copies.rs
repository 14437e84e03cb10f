//! The copies of a run as files: where they stand, who can read them, and what becomes of others.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::ledger::{NewCopies, StrayCopies};

impl Scene {
    fn copies(&self, path: &str) -> PathBuf {
        self.folder.path().join("runs").join(path)
    }

    async fn prepared(&self, list: &str) -> Box<dyn NewCopies> {
        let mut copies = self.ledger.prepare_copies(&self.hold).await.unwrap();
        copies.list().unwrap().write_all(list.as_bytes()).unwrap();
        copies
    }

    async fn freeze(&self, inputs: &str) {
        self.prepared("phone\n").await.freeze(inputs.as_bytes().to_vec(), &self.run).await.unwrap();
    }

    /// Everything in the folder of all copies.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.copies("")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn copies_are_two_files_in_a_folder_of_the_runs_name_which_their_owner_alone_can_read() {
    let scene = Scene::new().await;
    let copies = scene.prepared("phone\n1\n").await;
    assert_eq!(scene.names(), [".new-sale.account"]);
    copies.freeze(b"{}".to_vec(), &scene.run).await.unwrap();
    assert_eq!(scene.names(), ["sale@1"]);
    let read = |path| fs::read_to_string(scene.copies(path)).unwrap();
    assert_eq!((read("sale@1/frozen.json").as_str(), read("sale@1/recipients.csv").as_str()), ("{}", "phone\n1\n"));
    #[cfg(unix)]
    for (path, mode) in
        [("", 0o700), ("sale@1", 0o700), ("sale@1/frozen.json", 0o600), ("sale@1/recipients.csv", 0o600)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(scene.copies(path)).unwrap().permissions().mode() & 0o777, mode, "{path}");
    }
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_no_folder() {
    let scene = Scene::new().await;
    drop(scene.prepared("phone\n").await);
    assert!(scene.names().is_empty());
}

#[tokio::test]
async fn copies_that_a_lost_ledger_left_are_kept_under_another_name_and_are_no_runs_any_more() {
    let scene = Scene::new().await;
    for inputs in ["first", "second", "third"] {
        scene.freeze(inputs).await;
    }
    assert_eq!(scene.names(), ["sale@1", "sale@1.old-1", "sale@1.old-2"]);
    for (folder, inputs) in [("sale@1.old-1", "first"), ("sale@1.old-2", "second"), ("sale@1", "third")] {
        assert_eq!(fs::read_to_string(scene.copies(folder).join("frozen.json")).unwrap(), inputs);
    }
    let _begun = scene.prepared("phone\n").await;
    assert_eq!(scene.ledger.stray_copies().await.unwrap(), []);
    let strays = SqliteLedger::copies_without(&scene.folder.path().join("ledger"));
    let place = scene.copies("sale@1").display().to_string();
    assert_eq!(strays, [StrayCopies { run: "sale@1".into(), place: place.clone(), inputs: Some(b"third".to_vec()) }]);
    assert_eq!(scene.ledger.put_copies_aside("sale@1").await.unwrap(), format!("{place}.old-3"));
}

#[tokio::test]
async fn copies_that_are_missing_or_no_files_are_told_with_their_folder() {
    let scene = Scene::new().await;
    scene.freeze("{}").await;
    fs::remove_file(scene.copies("sale@1/recipients.csv")).unwrap();
    let copies = scene.ledger.copies(&scene.run).await.unwrap();
    let missing = copies.list().err().expect("there is no list").to_string();
    let told = copies.unusable(missing).to_string();
    assert!(told.contains(&*scene.copies("sale@1").to_string_lossy()) && told.contains("No such file"), "{told}");
    fs::create_dir(scene.copies("sale@1/recipients.csv")).unwrap();
    assert!(copies.list().err().expect("no list").to_string().contains("a folder"));
    fs::remove_file(scene.copies("sale@1/frozen.json")).unwrap();
    let refused = scene.ledger.copies(&scene.run).await.unwrap_err().to_string();
    assert!(refused.contains(&*scene.copies("sale@1").to_string_lossy()), "{refused}");
}

#[tokio::test]
async fn copies_that_cannot_be_made_are_refused_and_nothing_is_named() {
    let scene = Scene::new().await;
    fs::write(scene.folder.path().join("runs"), "a file").unwrap();
    let refused = scene.ledger.prepare_copies(&scene.hold).await.map(drop);
    assert!(matches!(&refused, Err(LedgerError::NotCopied { .. })), "{refused:?}");
}
