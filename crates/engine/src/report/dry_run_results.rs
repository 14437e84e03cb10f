//! Results files of dry runs, which no ledger records: found by their names, and cleared of a recipient's data.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use campaign_core::domain::Phone;
use campaign_core::private;
use campaign_manifest::CampaignPath;

use super::columns::COLUMN_NAMES;
use super::recipients::contains_number;
use super::results_file::create_temporary_file;
use super::target::{detect_delimiter, open_text, read_head};

/// The end of the name of each results file of a dry run.
const NAME_END: &str = ".dry-run.csv";
/// The positions of the `row` and `to` columns, counted from 0.
const ROW_COLUMN: usize = 0;
const PHONE_COLUMN: usize = 2;

/// Lists the files in a folder that have the name of a dry run's results, sorted by name.
///
/// # Errors
/// If the folder exists but cannot be read.
pub fn list_dry_run_results(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(NAME_END) && path.is_file() {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Empties the cells of a phone number's rows in the results of a dry run, and the cells of other rows that contain the
/// number. Replaces the file, unless it does not contain the number or is not a results file. Returns the number of
/// changed rows.
///
/// # Errors
/// If the file cannot be read or replaced.
pub fn erase_from_dry_run_results(path: &Path, phone: Phone) -> io::Result<u64> {
    // A symbolic link stays, and the file that it points to is replaced.
    let path = path.canonicalize()?;
    let Some((_, mut results)) = open_results(&path)? else { return Ok(0) };
    let (mut record, mut changed) = (csv::ByteRecord::new(), 0);
    while results.read_byte_record(&mut record)? {
        let mut cells = record.iter().enumerate();
        changed += u64::from(cells.any(|(position, cell)| is_erased(&record, position, cell, phone)));
    }
    if changed > 0 {
        let (temporary, file) = create_temporary_file(&path)?;
        let written = write_without_number(&path, phone, &file).and_then(|()| fs::rename(&temporary, &path));
        if written.is_err() {
            // The first error is reported, so a failure to remove the file is ignored.
            let _ = fs::remove_file(&temporary);
        }
        written?;
        private::sync_entry(&path)?;
    }
    Ok(changed)
}

type CsvReader = csv::Reader<Box<dyn Read>>;

/// Opens a results file, and returns its delimiter; `None` for any other file. The header is the first record.
fn open_results(path: &Path) -> io::Result<Option<(u8, CsvReader)>> {
    let file = CampaignPath::anywhere(path);
    let Some(delimiter) = detect_delimiter(&read_head(&file)?) else { return Ok(None) };
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).delimiter(delimiter).flexible(true);
    Ok(Some((delimiter, builder.from_reader(open_text(&file)?))))
}

fn write_without_number(path: &Path, phone: Phone, file: &File) -> io::Result<()> {
    let Some((delimiter, mut results)) = open_results(path)? else { return Ok(()) };
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).flexible(true).from_writer(file);
    let mut record = csv::ByteRecord::new();
    while results.read_byte_record(&mut record)? {
        let cells = record.iter().enumerate();
        let rest = cells.map(|(position, cell)| if is_erased(&record, position, cell, phone) { &[][..] } else { cell });
        writer.write_record(rest)?;
    }
    writer.flush()?;
    file.sync_all()
}

/// Whether a cell belongs to the phone number or contains it. A header contains no number.
fn is_erased(record: &csv::ByteRecord, position: usize, cell: &[u8], phone: Phone) -> bool {
    if position == ROW_COLUMN || cell.is_empty() {
        return false;
    }
    let is_own = record.get(PHONE_COLUMN) == Some(phone.to_string().as_bytes());
    let is_personal = position == PHONE_COLUMN || position >= COLUMN_NAMES.len();
    is_own && is_personal || contains_number(&String::from_utf8_lossy(cell), phone, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_erased_from_its_rows_and_from_other_cells() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sale.dry-run.csv");
        let row = |row: usize, to: &str, cells: &str| {
            let mut known = vec![String::new(); COLUMN_NAMES.len()];
            (known[ROW_COLUMN], known[PHONE_COLUMN]) = (row.to_string(), to.to_owned());
            format!("{},{cells}\n", known.join(","))
        };
        let header = format!("{},phone,name,note\n", COLUMN_NAMES.join(","));
        let other = row(3, "380501234568", "'+380501234568,\"Ivan, Jr\",050 123 45 68");
        let before = [
            &header,
            &row(2, "380501234567", "'+380501234567,Olha,\"a, b\""),
            &other,
            &row(4, "380501234568", "380501234568,Ivan,call 050 123-45-67"),
        ];
        fs::write(&path, before.map(String::as_str).concat()).unwrap();
        fs::write(folder.path().join("mine.dry-run.csv"), "380501234567\n").unwrap();
        let phone = Phone::new(380_501_234_567).unwrap();
        let files = list_dry_run_results(folder.path()).unwrap();
        let erase = || files.iter().map(|file| erase_from_dry_run_results(file, phone).unwrap()).collect::<Vec<_>>();
        assert_eq!(erase(), [0, 2]);
        let after = [&header, &row(2, "", ",,"), &other, &row(4, "380501234568", "380501234568,Ivan,")];
        assert_eq!(fs::read_to_string(&path).unwrap(), after.map(String::as_str).concat());
        assert_eq!(erase(), [0, 0]);
        assert!(list_dry_run_results(&folder.path().join("none")).unwrap().is_empty());
    }
}
