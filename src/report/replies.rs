//! What recipients answered, as CSV.

use std::io::Write;

use super::cell::escape_formula;
use super::{ResultsError, RowRecords, is_owned};
use crate::domain::ReportedChannel;
use crate::ledger::{KeptReceipt, Ledger, ReceiptReader, Run};

/// The columns.
const HEADER: [&str; 8] = ["run", "row", "to", "channel", "at", "text", "digit", "media"];

/// Writes every answer to a message of a run, in the order of the rows; tells how many there are.
///
/// # Errors
/// When the ledger cannot be read, or `out` cannot be written.
pub async fn write_replies(ledger: &dyn Ledger, run: &Run, out: impl Write) -> Result<u64, ResultsError> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(HEADER).map_err(csv_write_error)?;
    let mut records = RowRecords::open(ledger, run, is_owned(ledger, run).await?).await?;
    let (name, mut count) = (run.name(), 0);
    let mut receipts = ReceiptReader::new(ledger, run.key, run.last_row());
    while let Some(told) = receipts.next_receipts().await? {
        for (row, receipts) in told {
            let answers: Vec<ReplyCells> = receipts.iter().flat_map(extract_replies).collect();
            if answers.is_empty() {
                continue;
            }
            let to = records
                .take_record(row)
                .await?
                .and_then(|record| record.phone)
                .map(|phone| phone.to_string())
                .unwrap_or_default();
            for ReplyCells { channel, at, text, digit, media } in answers {
                let cells = [
                    name.as_str(),
                    &row.to_string(),
                    &to,
                    &escape_formula(channel),
                    &at,
                    &escape_formula(text),
                    &escape_formula(digit),
                    &escape_formula(media),
                ];
                csv.write_record(cells).map_err(csv_write_error)?;
                count += 1;
            }
        }
    }
    csv.flush().map_err(|error| ResultsError::Write { path: "-".into(), error })?;
    Ok(count)
}

/// One answer, as its cells.
struct ReplyCells<'k> {
    channel: &'k str,
    at: String,
    text: &'k str,
    digit: &'k str,
    media: &'k str,
}

/// The answers that a receipt tells of: words, files, and digits that were pressed.
fn extract_replies(kept: &KeptReceipt) -> impl Iterator<Item = ReplyCells<'_>> {
    let receipt = &kept.receipt;
    let channel = receipt.channel.as_ref().map_or("", ReportedChannel::as_str);
    let replies = receipt.replies.iter().map(move |reply| ReplyCells {
        channel,
        at: format!("{:.3}", reply.at.unwrap_or_else(|| kept.reported_at())),
        text: &reply.text,
        digit: "",
        media: reply.media.as_ref().map_or("", |media| &media.url),
    });
    let digit = receipt.digit.as_deref().map(move |digit| ReplyCells {
        channel,
        at: format!("{:.3}", kept.reported_at()),
        text: "",
        digit,
        media: "",
    });
    replies.chain(digit)
}

fn csv_write_error(error: csv::Error) -> ResultsError {
    ResultsError::Write { path: "-".into(), error: error.into() }
}
