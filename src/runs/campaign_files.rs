//! The campaign files of a folder.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::manifest::CampaignPath;

/// The largest file that can be one, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The campaign files of a folder by their names: what is YAML and names channels. Links are followed within it alone.
///
/// # Errors
/// When the folder cannot be read.
pub fn list_campaign_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let whole: Arc<Path> = folder.canonicalize()?.into();
    let entries = std::fs::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path());
    let is_campaign = |path: &PathBuf| {
        let file = path.file_name().map(|name| CampaignPath::within(&whole, name));
        is_yaml(path) && file.is_some_and(|file| file.open_file().is_ok_and(names_channels))
    };
    let mut files: Vec<PathBuf> = entries.filter(is_campaign).collect();
    files.sort_unstable();
    Ok(files)
}

fn is_yaml(path: &Path) -> bool {
    matches!(path.extension().and_then(|ending| ending.to_str()), Some("yaml" | "yml"))
}

fn names_channels(file: impl Read) -> bool {
    let mut text = String::new();
    let read = file.take(MAX_BYTES).read_to_string(&mut text);
    read.is_ok_and(|read| (read as u64) < MAX_BYTES) && text.lines().any(|line| line.starts_with("channels:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn symlink_out_of_the_folder_is_not_listed() {
        use std::os::unix::fs::symlink;
        let house = tempfile::tempdir().unwrap();
        let (inside, text) = (house.path().join("campaigns"), "name: x\nchannels: []\n");
        std::fs::create_dir_all(inside.join("folder.yaml")).unwrap();
        std::fs::create_dir_all(inside.join("below")).unwrap();
        for name in ["b.yaml", "a.yml", "list.csv", "below/deep.yaml", "../outside.yaml"] {
            std::fs::write(inside.join(name), text).unwrap();
        }
        std::fs::write(inside.join("gateways.yaml"), "production: {}\n").unwrap();
        symlink("b.yaml", inside.join("again.yaml")).unwrap();
        symlink("below/deep.yaml", inside.join("deep.yaml")).unwrap();
        symlink("../outside.yaml", inside.join("out.yaml")).unwrap();
        symlink("/dev/zero", inside.join("zero.yaml")).unwrap();
        symlink("nowhere.yaml", inside.join("broken.yaml")).unwrap();
        let found = list_campaign_files(&inside).unwrap();
        let names: Vec<&str> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a.yml", "again.yaml", "b.yaml", "deep.yaml"]);
        assert!(list_campaign_files(&house.path().join("none")).is_err());
    }
}
