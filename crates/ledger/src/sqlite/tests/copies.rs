//! Copies of runs as files: names, permissions, and existing copies.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::{CopiesPurpose, NewCopies, StrayCopies};

impl SqliteScene {
    fn copy_path(&self, path: &str) -> PathBuf {
        self.folder.path().join("runs").join(path)
    }

    async fn begin_copies(&self, list: &str) -> Box<dyn NewCopies> {
        let mut copies = self.ledger.prepare_copies(CopiesPurpose::NewRun(&self.lock)).await.unwrap();
        copies.list_writer().unwrap().write_all(list.as_bytes()).unwrap();
        copies
    }

    async fn freeze_copies(&self, inputs: &str) {
        self.begin_copies("phone\n").await.freeze(inputs.as_bytes().to_vec(), &self.run).await.unwrap();
    }

    /// The sorted names in the folder that contains all copies.
    fn list_folders(&self) -> Vec<String> {
        let entries = fs::read_dir(self.copy_path("")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn copies_are_two_private_files_in_the_run_folder() {
    let scene = SqliteScene::new().await;
    let copies = scene.begin_copies("phone\n1\n").await;
    assert_eq!(scene.list_folders(), [".new-sale.account"]);
    copies.freeze(b"{}".to_vec(), &scene.run).await.unwrap();
    assert_eq!(scene.list_folders(), ["sale@1"]);
    let read = |path| fs::read_to_string(scene.copy_path(path)).unwrap();
    assert_eq!((read("sale@1/frozen.json").as_str(), read("sale@1/recipients.csv").as_str()), ("{}", "phone\n1\n"));
    #[cfg(unix)]
    for (path, mode) in
        [("", 0o700), ("sale@1", 0o700), ("sale@1/frozen.json", 0o600), ("sale@1/recipients.csv", 0o600)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(scene.copy_path(path)).unwrap().permissions().mode() & 0o777, mode, "{path}");
    }
}

#[tokio::test]
async fn abandoned_start_leaves_no_folder() {
    let scene = SqliteScene::new().await;
    drop(scene.begin_copies("phone\n").await);
    assert!(scene.list_folders().is_empty());
}

#[tokio::test]
async fn copies_of_a_lost_ledger_are_renamed_and_kept() {
    let scene = SqliteScene::new().await;
    for inputs in ["first", "second", "third"] {
        scene.freeze_copies(inputs).await;
    }
    assert_eq!(scene.list_folders(), ["sale@1", "sale@1.old-1", "sale@1.old-2"]);
    for (folder, inputs) in [("sale@1.old-1", "first"), ("sale@1.old-2", "second"), ("sale@1", "third")] {
        assert_eq!(fs::read_to_string(scene.copy_path(folder).join("frozen.json")).unwrap(), inputs);
    }
    let _begun = scene.begin_copies("phone\n").await;
    assert_eq!(scene.ledger.list_stray_copies().await.unwrap(), []);
    let strays = SqliteLedger::list_copies_without_ledger(&scene.folder.path().join("ledger"));
    let place = scene.copy_path("sale@1").display().to_string();
    assert_eq!(strays, [StrayCopies { run: "sale@1".into(), place: place.clone(), inputs: Some(b"third".to_vec()) }]);
    assert_eq!(scene.ledger.set_copies_aside("sale@1").await.unwrap(), format!("{place}.old-3"));
}

#[tokio::test]
async fn missing_copies_are_reported_with_their_folder() {
    let scene = SqliteScene::new().await;
    scene.freeze_copies("{}").await;
    fs::remove_file(scene.copy_path("sale@1/recipients.csv")).unwrap();
    let copies = scene.ledger.load_copies(&scene.run).await.unwrap();
    let missing = copies.open_list().err().expect("there is no list").to_string();
    let message = copies.unreadable_error(missing).to_string();
    assert!(
        message.contains(&*scene.copy_path("sale@1").to_string_lossy()) && message.contains("No such file"),
        "{message}"
    );
    fs::create_dir(scene.copy_path("sale@1/recipients.csv")).unwrap();
    assert!(copies.open_list().err().expect("no list").to_string().contains("a folder"));
    fs::remove_file(scene.copy_path("sale@1/frozen.json")).unwrap();
    let error = scene.ledger.load_copies(&scene.run).await.unwrap_err().to_string();
    assert!(error.contains(&*scene.copy_path("sale@1").to_string_lossy()), "{error}");
}

#[tokio::test]
async fn failed_copy_is_reported_as_not_copied() {
    let scene = SqliteScene::new().await;
    fs::write(scene.folder.path().join("runs"), "a file").unwrap();
    let result = scene.ledger.prepare_copies(CopiesPurpose::NewRun(&scene.lock)).await.map(drop);
    assert!(matches!(&result, Err(LedgerError::NotCopied { .. })), "{result:?}");
}
