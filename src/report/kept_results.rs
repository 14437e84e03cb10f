//! Backups of another run's results at the place where a run writes its own. They get another name, and no file is
//! overwritten.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::target::{detect_delimiter, open_text};
use crate::manifest::CampaignPath;
use crate::private::{self, ExistingFile};

/// The column of the run, counted from 0.
const RUN_COLUMN: usize = 16;
/// How much of two files is compared at once.
const COMPARE_BYTES: usize = 1 << 16;

/// Results that were kept under another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultsBackup {
    /// Their run.
    pub run: String,
    /// Their new path.
    pub path: PathBuf,
}

/// The run of the first row of a results file. `None` if it has no rows or names no run.
pub(super) fn read_run_name(file: &CampaignPath) -> Option<String> {
    let mut head = Vec::new();
    // The header alone can be that long, and the first row follows it.
    open_text(file).ok()?.take(1 << 21).read_to_end(&mut head).ok()?;
    let delimiter = detect_delimiter(&head)?;
    let mut results = csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(head.as_slice());
    let mut record = csv::ByteRecord::new();
    results.read_byte_record(&mut record).ok().filter(|has_row| *has_row)?;
    let run = std::str::from_utf8(record.get(RUN_COLUMN)?).ok()?;
    parse_run_number(run).map(|_| run.to_owned())
}

/// The number of a run in its name: the `3` of `sale@3`.
fn parse_run_number(run: &str) -> Option<u32> {
    run.rsplit_once('@')?.1.parse().ok()
}

/// Keeps the results of a run as `NAME@N` in the same folder. N is the number of the run, or a higher number if that file
/// exists. The original file stays until its successor replaces it.
///
/// # Errors
/// When the file cannot be linked or copied.
pub(super) fn back_up_results(path: &Path, run: &str) -> io::Result<PathBuf> {
    let first = parse_run_number(run).unwrap_or(1);
    for number in first..=u32::MAX {
        let kept = numbered_path(path, number);
        match link_or_copy(path, &kept) {
            Ok(()) => {
                private::sync_entry(&kept)?;
                return Ok(kept);
            }
            // A process that ended before it replaced the original already kept it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && has_same_content(path, &kept) => {
                return Ok(kept);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The path with `@N` before its ending.
fn numbered_path(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("@{number}"));
    if let Some(ending) = path.extension() {
        name.push(".");
        name.push(ending);
    }
    path.with_file_name(name)
}

/// Gives a file a second name, or copies it if the file system has no links. It never overwrites a file.
fn link_or_copy(path: &Path, kept: &Path) -> io::Result<()> {
    match fs::hard_link(path, kept) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {}
        linked => return linked,
    }
    let mut source = File::open(path)?;
    let mut copy = private::open_file(kept, ExistingFile::CreateNew)?;
    let copied = io::copy(&mut source, &mut copy).and_then(|_| copy.sync_all());
    if copied.is_err() {
        // An incomplete copy is removed. The first error is reported.
        let _ = fs::remove_file(kept);
    }
    copied
}

/// Whether two files have the same bytes.
fn has_same_content(one: &Path, other: &Path) -> bool {
    let same = || -> io::Result<bool> {
        let (one, other) = (File::open(one)?, File::open(other)?);
        if one.metadata()?.len() != other.metadata()?.len() {
            return Ok(false);
        }
        let (mut one, mut other) =
            (BufReader::with_capacity(COMPARE_BYTES, one), BufReader::with_capacity(COMPARE_BYTES, other));
        let (mut left, mut right) = ([0; COMPARE_BYTES], [0; COMPARE_BYTES]);
        loop {
            let (count, others) = (fill_buffer(&mut one, &mut left)?, fill_buffer(&mut other, &mut right)?);
            if left[..count] != right[..others] {
                return Ok(false);
            }
            if count == 0 {
                return Ok(true);
            }
        }
    };
    same().unwrap_or(false)
}

/// Reads until the buffer is full or the file ends.
fn fill_buffer(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::super::layout::COLUMNS;
    use super::*;

    fn results_csv(run: &str) -> String {
        let mut cells = vec![String::new(); COLUMNS.len()];
        cells[RUN_COLUMN] = run.to_owned();
        format!("{}\n{}\n", COLUMNS.join(","), cells.join(","))
    }

    #[test]
    fn run_column_keeps_its_position() {
        assert_eq!(COLUMNS[RUN_COLUMN], "run");
    }

    #[test]
    fn run_is_read_from_the_first_row() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sale.csv");
        let run = |text: &str| {
            fs::write(&path, text).unwrap();
            read_run_name(&CampaignPath::anywhere(&path))
        };
        assert_eq!(run(&results_csv("sale@3")), Some("sale@3".to_owned()));
        assert_eq!(run(&results_csv("sale@3").replace(',', ";")), Some("sale@3".to_owned()));
        assert_eq!(run(&format!("\u{feff}{}", results_csv("зима@12"))), Some("зима@12".to_owned()));
        for none in
            [results_csv(""), COLUMNS.join(","), String::new(), "phone,name\n1,2\n".to_owned(), results_csv("sale")]
        {
            assert_eq!(run(&none), None, "{none}");
        }
    }

    #[test]
    fn backup_takes_a_free_name_and_overwrites_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("sale.csv"), "one").unwrap();
        assert_eq!(back_up_results(&at("sale.csv"), "sale@1").unwrap(), at("sale@1.csv"));
        assert_eq!(
            back_up_results(&at("sale.csv"), "sale@1").unwrap(),
            at("sale@1.csv"),
            "the same again needs no other file"
        );
        fs::remove_file(at("sale.csv")).unwrap();
        fs::write(at("sale.csv"), "two").unwrap();
        assert_eq!(back_up_results(&at("sale.csv"), "sale@1").unwrap(), at("sale@2.csv"));
        fs::create_dir(at("sale@3.csv")).unwrap();
        fs::remove_file(at("sale.csv")).unwrap();
        fs::write(at("sale.csv"), "three").unwrap();
        assert_eq!(back_up_results(&at("sale.csv"), "sale@3").unwrap(), at("sale@4.csv"), "a folder is in the way");
        let read = |name: &str| fs::read_to_string(at(name)).unwrap();
        assert_eq!([read("sale@1.csv"), read("sale@2.csv"), read("sale@4.csv")], ["one", "two", "three"]);
        for (name, kept) in [("a.b.xlsx", "a.b@7.xlsx"), ("plain", "plain@7")] {
            assert_eq!(numbered_path(Path::new(name), 7), Path::new(kept));
        }
    }
}
