//! Signs of a lost or restored ledger: results and run copies that the ledger has no record of.
//!
//! The campaign's results file and the copies of sent runs are the evidence. Files that contradict the ledger are never
//! replaced, but a person can move them away.

use std::fmt;
use std::io::{self, BufRead as _, BufReader};
use std::path::PathBuf;

use roaring::RoaringTreemap;

use super::target::{detect_delimiter, open_text};
use crate::delivery::FrozenInputs;
use campaign_content::audience::clean_cell;
use campaign_core::domain::IdRange;
use campaign_ledger::{EnvelopeReader, Ledger, LedgerError, RowEvents, Run, RunFilter, RunProgress, StrayCopies};
use campaign_manifest::CampaignPath;

/// Evidence of a run that the ledger does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LossSign {
    /// Copies of an unknown run.
    Copies {
        /// The name of the run.
        run: String,
        /// The folder of the copies.
        place: String,
    },
    /// Results with unknown identifiers.
    Results {
        /// The file.
        path: PathBuf,
        /// The number of unknown identifiers.
        identifiers: u64,
    },
}

impl fmt::Display for LossSign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copies { place, .. } => write!(f, "`{place}` contains the inputs of an unknown run"),
            Self::Results { path, identifiers: 1 } => {
                write!(f, "`{}` contains the identifier of 1 unknown message", path.display())
            }
            Self::Results { path, identifiers } => {
                write!(f, "`{}` contains the identifiers of {identifiers} unknown messages", path.display())
            }
        }
    }
}

/// Finds the runs that stray copies belong to, except rehearsals.
pub fn find_stray_runs(copies: Vec<StrayCopies>) -> Vec<LossSign> {
    let rehearsed = |inputs: &[u8]| FrozenInputs::from_bytes(inputs).is_ok_and(|frozen| frozen.brief.is_rehearsal());
    let live = copies.into_iter().filter(|copies| !copies.inputs.as_deref().is_some_and(rehearsed));
    live.map(|StrayCopies { run, place, .. }| LossSign::Copies { run, place }).collect()
}

/// The maximum number of rows to check in commands that send nothing.
const QUICK_CHECK_ROWS: usize = 10_000;

/// The results at `path`, if they contain identifiers that the ledger never assigned. Without a ledger, all identifiers
/// count as unknown.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn find_unknown_results(
    ledger: Option<&dyn Ledger>,
    path: &CampaignPath,
) -> Result<Option<LossSign>, LedgerError> {
    find_unknown_within(ledger, path, usize::MAX).await
}

/// Like [`find_unknown_results`], but checks only the first rows unless they contain unknown identifiers: commands that
/// send nothing must not wait for millions of rows.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn find_unknown_results_quickly(
    ledger: &dyn Ledger,
    path: &CampaignPath,
) -> Result<Option<LossSign>, LedgerError> {
    match find_unknown_within(Some(ledger), path, QUICK_CHECK_ROWS).await? {
        None => Ok(None),
        // The full check is needed for the exact number.
        Some(_) => find_unknown_results(Some(ledger), path).await,
    }
}

async fn find_unknown_within(
    ledger: Option<&dyn Ledger>,
    path: &CampaignPath,
    limit: usize,
) -> Result<Option<LossSign>, LedgerError> {
    let file = path.clone();
    let read = tokio::task::spawn_blocking(move || read_identifiers(&file, limit)).await;
    // An unreadable file counts as having no identifiers; whether it can be replaced is decided elsewhere.
    let mut unknown = read.ok().and_then(Result::ok).unwrap_or_default();
    if let (Some(ledger), Some((first, last))) = (ledger, unknown.min().zip(unknown.max())) {
        let ids = Some(IdRange { first, len: last - first + 1 });
        for run in ledger.list_runs(RunFilter { ids, ..RunFilter::all() }).await? {
            remove_known_ids(ledger, &run, &mut unknown).await?;
        }
    }
    let identifiers = unknown.len();
    Ok((identifiers > 0).then(|| LossSign::Results { path: path.path().to_owned(), identifiers }))
}

/// Removes from `unknown` the identifiers that a run assigned to messages.
async fn remove_known_ids(ledger: &dyn Ledger, run: &Run, unknown: &mut RoaringTreemap) -> Result<(), LedgerError> {
    let ranges: Vec<IdRange> = run.id_ranges().collect();
    let range = |ids: &IdRange| ids.first..ids.first + ids.len;
    if ranges.iter().all(|ids| unknown.range_cardinality(range(ids)) == 0) {
        return Ok(());
    }
    if run.progress != RunProgress::Open {
        // A closed run assigns no more identifiers, so all identifiers in its ranges count as known.
        ranges.iter().for_each(|ids| _ = unknown.remove_range(range(ids)));
        return Ok(());
    }
    let events = RowEvents::new(ledger.load_events(run.key).await?, run.endpoint);
    let mut envelopes = EnvelopeReader::new(ledger, run.key);
    while let Some(envelope) = envelopes.next_envelope().await? {
        for sent in &envelope.rows {
            let id = run.message_id(sent.row, events.find_order(sent.row, envelope.envelope));
            id.map(|id| unknown.remove(id.get()));
        }
    }
    Ok(())
}

/// The identifiers in the first `limit` rows of a results file. The file can have any supported encoding, be
/// compressed, or be a workbook, because a spreadsheet program might have saved it. Empty if the file is not a results
/// file.
fn read_identifiers(path: &CampaignPath, limit: usize) -> io::Result<RoaringTreemap> {
    let mut file = BufReader::with_capacity(1 << 16, open_text(path)?);
    let Some(delimiter) = detect_delimiter(file.fill_buf()?) else { return Ok(RoaringTreemap::new()) };
    let mut results = csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(file);
    let (mut ids, mut record) = (RoaringTreemap::new(), csv::ByteRecord::new());
    let mut remaining = limit;
    // Reading stops at the first damaged row; the rows before it count.
    while remaining > 0 && results.read_byte_record(&mut record).unwrap_or(false) {
        remaining -= 1;
        // The identifier is in the second column.
        let id = record.get(1).and_then(|id| clean_cell(std::str::from_utf8(id).ok()?).parse::<u64>().ok());
        ids.extend(id);
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::columns::COLUMN_NAMES;
    use super::*;

    #[test]
    fn identifiers_are_read_from_csv_and_spreadsheet_copies() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.csv");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            read_identifiers(&CampaignPath::anywhere(&path), usize::MAX).unwrap().into_iter().collect::<Vec<u64>>()
        };
        let header = COLUMN_NAMES.join(",");
        let rows = "2,17,380501234567,accepted,sms,5\n3,,1,skipped,,\n";
        assert_eq!(read(&format!("{header},name\n{rows}")), [17]);
        let quoted = format!("\u{feff}\"{}\"\r\n", COLUMN_NAMES.join("\";\""));
        assert_eq!(read(&format!("{quoted}2;\"18\";1;accepted\r\n")), [18]);
        let spoilt = "2;1,78378E+14;1;accepted;sms\n3;19;2;accepted;sms\n";
        assert_eq!(read(&format!("{}\n{spoilt}", COLUMN_NAMES.join(";"))), [19]);
        let exact = "2;\"=\"\"78378000000020\"\"\";1;accepted;sms\n";
        assert_eq!(read(&format!("\u{feff}{}\n{exact}", COLUMN_NAMES.join(";"))), [78_378_000_000_020]);
        fs::write(&path, format!("{header}\n2,17,1,accepted\n3,18,2,accepted\n")).unwrap();
        assert_eq!(
            read_identifiers(&CampaignPath::anywhere(&path), 1).unwrap().into_iter().collect::<Vec<u64>>(),
            [17]
        );
        assert!(read("id,phone\n17,380501234567\n").is_empty() && read("").is_empty());
        assert!(read_identifiers(&CampaignPath::anywhere(folder.path().join("none.csv")), 1).is_err());
    }
}
