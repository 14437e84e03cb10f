//! The results path: which files results can replace, and which they never replace.
//!
//! Results are written only over results (a file that begins with their header), over an empty file, or where no file
//! exists. Files are compared by identity, not by path. Nothing is written or created here.

use std::fmt::Display;
use std::fs::{self, Metadata};
use std::io::{self, Read, Seek as _};
use std::path::{Component, Path, PathBuf};

use campaign_content::audience::decode_table;
use campaign_manifest::CampaignPath;

/// The columns that identify results of every version: those of the first version, which later versions keep in front.
const FIRST_COLUMNS: [&str; 17] = [
    "row",
    "id",
    "to",
    "state",
    "operation",
    "msg_id",
    "request_id",
    "parts",
    "gateway_status",
    "reason",
    "error",
    "submitted_at",
    "updated_at",
    "delivered_by",
    "delivered_at",
    "answer",
    "run",
];

/// The number of bytes that are read to find the header. In any dialect, the quoted header takes a fifth of them.
const HEAD_BYTES: u64 = 1024;

/// The path of the results, and the files that they must not replace.
#[derive(Clone, Debug)]
pub struct ResultsTarget {
    file: CampaignPath,
    protected: Vec<ProtectedPath>,
}

/// A file or folder that results must not replace.
#[derive(Clone, Debug)]
pub struct ProtectedPath {
    /// The path, whether it exists or not.
    pub path: PathBuf,
    /// A description, to follow "`x` is ".
    pub what: &'static str,
}

impl ResultsTarget {
    /// A target for results at the path of `file`. Results must not overwrite `protected` files or folders.
    pub fn new(file: CampaignPath, protected: Vec<ProtectedPath>) -> Self {
        Self { file, protected }
    }

    /// The path of the results file, with the folder to which the file is confined.
    pub fn file(&self) -> &CampaignPath {
        &self.file
    }

    /// A target at another path, with the same protected files.
    #[must_use]
    pub(super) fn with_path(&self, path: &Path) -> Self {
        Self { file: self.file.with_path(path), protected: self.protected.clone() }
    }

    /// The path as the user named it.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The file to write. If the path is a link, its target is written and the link itself stays. A confined file must
    /// not be a link.
    ///
    /// # Errors
    /// The reason why the file must not be written, as text.
    pub fn resolve_path(&self) -> Result<PathBuf, String> {
        let (file, path) = (self.path(), self.file.display());
        if let Some(refusal) = self.file.find_write_refusal() {
            return Err(format!("`{path}` is {refusal}"));
        }
        if let Some(extension) = unsupported_workbook_extension(file) {
            return Err(format!("`{path}` has an unsupported workbook format ({extension}); use `.xlsx` or `.csv`"));
        }
        let (real, metadata) = match self.file.is_confined() {
            true => self.open_confined()?,
            false => {
                let real = resolve_links(file);
                let metadata = match fs::metadata(&real) {
                    Ok(metadata) => Some(metadata),
                    Err(_) if real.symlink_metadata().is_ok() => {
                        return Err(format!("`{path}` is a broken link"));
                    }
                    Err(_) if !can_create_parent(&real) => return Err(describe_blocked(&path)),
                    // Whether the file can be created is known only when it is created.
                    Err(_) => None,
                };
                (real, metadata)
            }
        };
        if let Some(protected) = self.protected.iter().find(|protected| protected.contains(&real, metadata.as_ref())) {
            return Err(format!("`{path}` is {}", protected.what));
        }
        match metadata {
            None if ends_in_separator(file) => Err(format!("`{path}` is a folder path")),
            None => Ok(real),
            Some(metadata) if metadata.is_dir() => Err(format!("`{path}` is a folder")),
            Some(metadata) if !metadata.is_file() => Err(format!("`{path}` is a pipe or a device")),
            Some(metadata) if metadata.len() == 0 => Ok(real),
            Some(_) => match read_head(&self.file.with_path(&real)) {
                Err(error) if error.raw_os_error().is_some() => Err(format!("`{path}` cannot be read: {error}")),
                Ok(head) if detect_delimiter(&head).is_some() => Ok(real),
                _ => Err(format!("`{path}` is not a results file written by campaign")),
            },
        }
    }
}

impl ResultsTarget {
    /// The path and metadata of a confined file. They are read through its open folder, so a link that replaces the
    /// folder is not followed.
    fn open_confined(&self) -> Result<(PathBuf, Option<Metadata>), String> {
        let (file, path) = (self.path(), self.file.display());
        let name = file.file_name().ok_or_else(|| format!("`{path}` is a folder"))?;
        match self.file.hold_folder(false) {
            Ok(Some(folder)) => match fs::symlink_metadata(folder.file_path(name)) {
                Ok(metadata) if metadata.is_symlink() => Err(format!(
                    "`{path}` is a symbolic link; campaigns opened by an assistant cannot write results through links"
                )),
                metadata => Ok((folder.current_path().join(name), metadata.ok())),
            },
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(describe_blocked(&path)),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(format!("`{path}` cannot be written: {error}"))
            }
            // The file does not exist yet.
            _ => Ok((file.to_owned(), None)),
        }
    }
}

impl ProtectedPath {
    /// Whether the target is this protected file, or is inside this protected folder.
    fn contains(&self, real_target: &Path, target: Option<&Metadata>) -> bool {
        let protected = fs::metadata(&self.path).ok();
        let target_identity = target.and_then(identity);
        if target_identity.is_some() && target_identity == protected.as_ref().and_then(identity) {
            return true;
        }
        let real = resolve_links(&self.path);
        let is_within = !protected.is_some_and(|protected| protected.is_file()) && real_target.starts_with(&real);
        is_within || *real_target == *real
    }
}

/// Whether results written to `path` are a workbook.
pub fn is_workbook(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xlsx"))
}

/// The extension of a workbook format that is not supported. A spreadsheet cannot open CSV with such an extension.
fn unsupported_workbook_extension(path: &Path) -> Option<&str> {
    let extension = path.extension()?.to_str()?;
    ["xls", "xlsm", "ods"].iter().any(|format| extension.eq_ignore_ascii_case(format)).then_some(extension)
}

/// The absolute path with links resolved. Components that do not exist are kept unchanged.
fn resolve_links(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut real = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                real.pop();
            }
            part => {
                real.push(part);
                real = real.canonicalize().unwrap_or(real);
            }
        }
    }
    real
}

/// Whether the nearest existing ancestor of a file is a folder, so that the missing folders can be created in it.
fn can_create_parent(file: &Path) -> bool {
    let ancestor = file.ancestors().skip(1).find(|ancestor| ancestor.symlink_metadata().is_ok());
    ancestor.is_none_or(Path::is_dir)
}

fn describe_blocked(path: &impl Display) -> String {
    format!("`{path}` cannot be created: part of its path is not a folder")
}

/// The device and inode of a file, which are the same for all paths to the file.
#[cfg(unix)]
fn identity(file: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    Some((file.dev(), file.ino()))
}

/// Returns `None`: on this system, a file can be identified only by its path.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

fn ends_in_separator(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().last().is_some_and(|&byte| std::path::is_separator(byte.into()))
}

/// Reads the first bytes of a file, decoded like in [`open_text`].
pub(super) fn read_head(path: &CampaignPath) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    open_text(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// Opens a file as text: unchanged if it begins with the header of results, otherwise decoded from another encoding, a
/// compressed file or a workbook.
///
/// The unchanged bytes are tried first, because results in an uncertain encoding still have readable identifiers.
pub(super) fn open_text(path: &CampaignPath) -> io::Result<Box<dyn Read>> {
    let mut file = path.open_file()?;
    let mut head = Vec::new();
    (&mut file).take(HEAD_BYTES).read_to_end(&mut head)?;
    file.rewind()?;
    if head.is_empty() || detect_delimiter(&head).is_some() {
        return Ok(Box::new(file));
    }
    Ok(match decode_table(file, path.path(), None) {
        Ok(text) => Box::new(text),
        Err(_) => Box::new(path.open_file()?),
    })
}

/// The delimiter of a results file that begins with `head`, even if a spreadsheet saved the file. `None` if the file is
/// not a results file.
pub(super) fn detect_delimiter(head: &[u8]) -> Option<u8> {
    let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head);
    [b',', b';', b'\t'].into_iter().find(|delimiter| {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).delimiter(*delimiter).from_reader(head);
        let mut record = csv::ByteRecord::new();
        let is_match = reader.read_byte_record(&mut record).is_ok() && record.len() >= FIRST_COLUMNS.len();
        is_match && record.iter().zip(FIRST_COLUMNS).all(|(cell, column)| cell == column.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of version 0.1. It stays in this test when columns change.
    const FIRST_HEADER: &str = "row,id,to,state,operation,msg_id,request_id,parts,gateway_status,reason,error,\
                                submitted_at,updated_at,delivered_by,delivered_at,answer,run";

    #[test]
    fn columns_of_the_first_version_keep_their_positions() {
        let now = crate::report::columns::COLUMN_NAMES;
        assert_eq!(now[..FIRST_COLUMNS.len()], FIRST_COLUMNS, "new columns are appended");
    }

    fn resolve(path: &Path, protected: &[(&Path, &'static str)]) -> Result<PathBuf, String> {
        let protected = protected.iter().map(|(path, what)| ProtectedPath { path: (*path).to_owned(), what }).collect();
        ResultsTarget::new(CampaignPath::anywhere(path), protected).resolve_path()
    }

    #[test]
    fn results_file_is_recognized_in_every_csv_dialect() {
        let quoted = FIRST_HEADER.split(',').map(|column| format!("\"{column}\"")).collect::<Vec<_>>();
        for text in [
            format!("{FIRST_HEADER}\n"),
            FIRST_HEADER.to_owned(),
            format!("{FIRST_HEADER},phone,name\r\n2,1,380501234567\r\n"),
            format!("\u{feff}{};phone\r\n", FIRST_HEADER.replace(',', ";")),
            format!("\u{feff}{}\r\n", quoted.join(";")),
            format!("{}\n", quoted.join(",")),
            format!("{}\n", FIRST_HEADER.replace(',', "\t")),
        ] {
            assert!(detect_delimiter(text.as_bytes()).is_some(), "{text}");
        }
        for other in [
            "phone,name\n380501234567,Olena\n".to_owned(),
            "row,id,to,state\n".to_owned(),
            FIRST_HEADER.replace("state", "State"),
            FIRST_HEADER.replacen("row,", "x,row,", 1),
            format!("\n\nx\n{FIRST_HEADER}\n"),
            "name: sale\n".to_owned(),
            "\"row".to_owned(),
            "\u{0}\u{1}".to_owned(),
        ] {
            assert!(detect_delimiter(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn only_results_and_empty_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.csv");
        assert!(resolve(&path, &[]).is_ok(), "no file");
        assert!(resolve(&folder.path().join("new/r.csv"), &[]).is_ok(), "no file, in a folder that does not exist yet");
        for (text, replaced) in [("", true), (&format!("{FIRST_HEADER}\n"), true), ("my work\n", false)] {
            fs::write(&path, text).unwrap();
            assert_eq!(resolve(&path, &[]).is_ok(), replaced, "{text}");
        }
        for path in [folder.path().to_owned(), folder.path().join("new/"), folder.path().join("r.csv/..")] {
            assert!(resolve(&path, &[]).unwrap_err().contains("folder"), "{}", path.display());
        }
    }

    #[test]
    fn other_workbook_formats_are_rejected() {
        for name in ["r.xlsm", "R.XLS", "r.ods"] {
            assert!(resolve(Path::new(name), &[]).unwrap_err().contains("use `.xlsx` or `.csv`"), "{name}");
        }
        assert!(
            resolve(Path::new("r.XLSX"), &[]).is_ok()
                && resolve(Path::new("xlsx"), &[]).is_ok()
                && resolve(Path::new("r.xlsx.csv"), &[]).is_ok()
        );
    }

    #[cfg(unix)]
    #[test]
    fn protected_file_is_recognized_under_any_path() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (list, state) = (at("list.csv"), at("state"));
        fs::write(&list, FIRST_HEADER).unwrap();
        fs::create_dir_all(at("sub")).unwrap();
        symlink(&list, at("link.csv")).unwrap();
        symlink(folder.path(), at("here")).unwrap();
        fs::hard_link(&list, at("twin.csv")).unwrap();
        let protected = [(list.as_path(), "the list"), (state.as_path(), "in the state folder")];
        let names = ["list.csv", "./list.csv", "sub/../list.csv", "none/../list.csv", "link.csv", "here/list.csv"];
        for name in names.into_iter().chain(["twin.csv", "here/state/x.csv", "state", "sub/../state/runs/a/b.csv"]) {
            let error = resolve(&at(name), &protected).unwrap_err();
            assert!(error.ends_with("the list") || error.ends_with("in the state folder"), "{error}");
        }
        assert!(resolve(&at("state.csv"), &protected).is_ok(), "beside the folder, not in it");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_devices_are_never_replaced() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old.csv"), FIRST_HEADER).unwrap();
        symlink("old.csv", at("latest.csv")).unwrap();
        assert_eq!(resolve(&at("latest.csv"), &[]).unwrap(), at("old.csv").canonicalize().unwrap());
        symlink("nowhere.csv", at("broken.csv")).unwrap();
        assert!(resolve(&at("broken.csv"), &[]).unwrap_err().contains("broken link"));
        symlink("/dev/null", at("device.csv")).unwrap();
        assert!(resolve(&at("device.csv"), &[]).unwrap_err().contains("a pipe or a device"));
    }
}
