//! Tests of paths inside and outside the campaigns folder.

use std::fs;
use std::io::Read as _;

use crate::campaign_paths::*;

/// A folder `campaigns` with a list, and a secret in the folder above it.
struct TestFolders {
    folder: tempfile::TempDir,
    paths: CampaignPaths,
}

impl TestFolders {
    fn create() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("campaigns/sub/deep")).unwrap();
        for name in ["campaigns/list.csv", "campaigns/sub/deep/list.csv", "secret.csv"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let scope = PathScope::within(&folder.path().join("campaigns")).unwrap();
        let PathScope::Within(whole) = &scope else { panic!("{scope:?}") };
        let paths = CampaignPaths::new(&whole.join("sale.yaml"), scope.clone());
        Self { folder, paths }
    }

    fn campaigns_folder(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("campaigns")
    }

    #[cfg(unix)]
    fn create_symlink(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.campaigns_folder().join(name)).unwrap();
    }

    /// The content of the file that a name resolves to, or the error.
    fn read_file(&self, name: &str) -> Result<String, String> {
        let path = self.paths.resolve_path(name).map_err(|finding| finding.message)?;
        let mut text = String::new();
        let mut file = path.open_file().map_err(|error| error.to_string())?;
        file.read_to_string(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }
}

#[test]
fn confined_path_opens_files_in_its_folder() {
    let test = TestFolders::create();
    let absolute = test.campaigns_folder().join("list.csv").display().to_string();
    for name in ["list.csv", "./list.csv", "sub/../list.csv", "sub/deep/../../list.csv", &absolute] {
        assert_eq!(test.read_file(name).as_deref(), Ok("campaigns/list.csv"), "{name}");
    }
    assert_eq!(test.read_file("sub/deep/list.csv").as_deref(), Ok("campaigns/sub/deep/list.csv"));
    assert!(test.read_file("none.csv").unwrap_err().contains("No such file"));
    assert!(test.read_file("sub").unwrap_err().contains("it is a folder"));
    assert!(test.read_file(".").unwrap_err().contains("it is a folder"));
    assert!(test.read_file("list.csv/x").is_err() && test.read_file("list.csv\0").is_err());
}

#[test]
fn confined_path_that_leaves_the_folder_is_refused() {
    let test = TestFolders::create();
    let secret = test.folder.path().canonicalize().unwrap().join("secret.csv").display().to_string();
    let missing = secret.replace("secret", "missing");
    let names =
        ["../secret.csv", "../missing.csv", "..", "sub/../../secret.csv", "../campaigns/list.csv", "none/../../x"];
    for name in names.into_iter().chain([secret.as_str(), &missing, "/etc/passwd", "/proc/self/environ", "/"]) {
        let error = test.read_file(name).unwrap_err();
        assert_eq!(error, format!("`{name}` is outside the campaigns folder"));
    }
}

#[cfg(unix)]
#[test]
fn confined_link_is_followed_only_inside_the_folder() {
    let test = TestFolders::create();
    test.create_symlink("list.csv", "same.csv");
    test.create_symlink("sub/deep", "down");
    test.create_symlink("../../list.csv", "sub/deep/up.csv");
    test.create_symlink(test.campaigns_folder().join("list.csv"), "whole.csv");
    for name in ["same.csv", "down/up.csv", "sub/deep/up.csv", "whole.csv"] {
        assert_eq!(test.read_file(name).as_deref(), Ok("campaigns/list.csv"), "{name}");
    }
    test.create_symlink("../secret.csv", "out.csv");
    test.create_symlink("../missing.csv", "gone.csv");
    test.create_symlink("..", "parent");
    test.create_symlink("/", "root");
    test.create_symlink("/proc/self", "self");
    test.create_symlink("out.csv", "twice.csv");
    test.create_symlink(test.campaigns_folder().join("../secret.csv"), "dots.csv");
    for name in [
        "out.csv",
        "gone.csv",
        "twice.csv",
        "dots.csv",
        "parent/secret.csv",
        "parent/missing.csv",
        "root/etc/passwd",
        "root/nowhere/passwd",
        "self/environ",
        "parent/campaigns/list.csv",
    ] {
        let error = test.read_file(name).unwrap_err();
        assert_eq!(error, format!("`{name}` is outside the campaigns folder"));
    }
    test.create_symlink("circle.csv", "circle.csv");
    test.create_symlink("nothing.csv", "dangling.csv");
    assert!(test.read_file("circle.csv").is_err());
    assert_eq!(test.read_file("dangling.csv").unwrap_err(), "it is a symbolic link to a file that does not exist");
}

#[cfg(unix)]
#[test]
fn link_that_replaces_a_checked_file_cannot_leave_the_folder() {
    let test = TestFolders::create();
    let file = test.paths.resolve_path("list.csv").unwrap();
    let deep = test.paths.resolve_path("sub/deep/list.csv").unwrap();
    fs::remove_file(test.campaigns_folder().join("list.csv")).unwrap();
    test.create_symlink("../secret.csv", "list.csv");
    fs::rename(test.campaigns_folder().join("sub"), test.campaigns_folder().join("old")).unwrap();
    fs::create_dir_all(test.folder.path().join("deep")).unwrap();
    fs::write(test.folder.path().join("deep/list.csv"), "secret").unwrap();
    test.create_symlink("..", "sub");
    for path in [file, deep] {
        assert!(is_outside(&path.open_file().unwrap_err()), "{}", path.display());
        assert!(path.leaves_folder() && !path.is_present());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn confined_pipe_is_refused_without_waiting() {
    let test = TestFolders::create();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let pipe = test.campaigns_folder().join("pipe.csv");
    rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(test.read_file("pipe.csv").unwrap_err().contains("it is a pipe"));
}

#[cfg(unix)]
#[test]
fn results_written_by_an_assistant_do_not_follow_links() {
    let test = TestFolders::create();
    test.create_symlink("list.csv", "same.csv");
    test.create_symlink("..", "parent");
    let refusal = |name: &str| test.paths.file().join_sibling(name).find_write_refusal();
    assert_eq!((refusal("new.csv"), refusal("new/new.csv"), refusal("list.csv")), (None, None, None));
    assert!(refusal("same.csv").unwrap().contains("a symbolic link"));
    for name in ["../new.csv", "parent/new.csv", "parent/secret.csv", "/tmp/new.csv"] {
        assert!(refusal(name).unwrap().contains("outside"), "{name}");
    }
    assert_eq!(CampaignPath::anywhere("../new.csv").find_write_refusal(), None);
}

#[cfg(unix)]
#[test]
fn confined_campaign_reads_texts_from_its_own_folders() {
    let test = TestFolders::create();
    let write = |name: &str| fs::write(test.folder.path().join(name), name).unwrap();
    fs::create_dir_all(test.folder.path().join("templates")).unwrap();
    fs::create_dir_all(test.folder.path().join("elsewhere")).unwrap();
    write("campaigns/beside.txt");
    write("templates/above.txt");
    write("elsewhere/secret.txt");
    test.create_symlink("../elsewhere", "templates");
    std::os::unix::fs::symlink("../elsewhere/secret.txt", test.folder.path().join("templates/out.txt")).unwrap();
    let folders = test.paths.text_folders();
    let open_text = |name: &str| {
        folders
            .iter()
            .find_map(|folder| folder.open_text(name))
            .map(|opened| opened.map(drop).map_err(|error| is_outside(&error)))
    };
    assert!(open_text("beside.txt").unwrap().is_ok());
    // The folder's own `templates/` is a link to a folder outside, so neither it nor any later folder is searched.
    for name in ["secret.txt", "missing.txt", "above.txt", "templates/secret.txt"] {
        assert!(open_text(name).unwrap().unwrap_err(), "{name}");
    }
    assert!(folders[1].list_names().is_empty());
    fs::remove_file(test.campaigns_folder().join("templates")).unwrap();
    assert!(open_text("above.txt").unwrap().is_ok() && open_text("missing.txt").is_none());
    assert!(open_text("out.txt").unwrap().unwrap_err());
    assert!(folders[2].list_names().contains(&"above.txt".to_owned()));
}

#[test]
fn unconfined_path_opens_any_file() {
    let test = TestFolders::create();
    let paths = CampaignPaths::new(&test.campaigns_folder().join("sale.yaml"), PathScope::Anywhere);
    let path = paths.resolve_path("../secret.csv").unwrap();
    assert!(path.is_present() && path.open_file().is_ok() && !path.leaves_folder());
    assert_eq!(path.path(), test.campaigns_folder().join("../secret.csv"));
}

#[cfg(target_os = "linux")]
#[test]
fn held_folder_is_not_redirected_by_a_link() {
    use std::os::unix::fs::symlink;
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir_all(at("campaigns")).unwrap();
    fs::create_dir_all(at("outside")).unwrap();
    let PathScope::Within(folder) = PathScope::within(&at("campaigns")).unwrap() else { panic!("a folder") };
    let folder_handle = CampaignPath::within(&folder, "new/results/r.csv").hold_folder(true).unwrap().unwrap();
    fs::rename(at("campaigns/new/results"), at("campaigns/new/moved")).unwrap();
    symlink(at("outside"), at("campaigns/new/results")).unwrap();
    fs::write(folder_handle.file_path(OsStr::new("r.csv")), "x").unwrap();
    assert!(at("campaigns/new/moved/r.csv").exists() && !at("outside/r.csv").exists());
    assert_eq!(folder_handle.current_path(), at("campaigns/new/moved").canonicalize().unwrap());
    for create in [false, true] {
        let error = CampaignPath::within(&folder, "new/results/r.csv").hold_folder(create).unwrap_err();
        assert!(is_outside(&error), "{error}");
    }
}
