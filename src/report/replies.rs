//! What recipients answered, as CSV.

use std::io::Write;

use super::cell::harmless;
use super::{ResultsError, RowRecords, is_owned};
use crate::domain::ReportedChannel;
use crate::ledger::{KeptReceipt, Ledger, ReceiptWalk, Run};

/// The columns.
const HEADER: [&str; 8] = ["run", "row", "to", "channel", "at", "text", "digit", "media"];

/// Writes every answer to a message of a run, in the order of the rows; tells how many there are.
///
/// # Errors
/// When the ledger cannot be read, or `out` cannot be written.
pub async fn write_replies(ledger: &dyn Ledger, run: &Run, out: impl Write) -> Result<u64, ResultsError> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(HEADER).map_err(unwritten)?;
    let mut records = RowRecords::new(ledger, run, is_owned(ledger, run).await?).await?;
    let (name, mut count) = (run.name(), 0);
    let mut receipts = ReceiptWalk::over(ledger, run.key, run.last_row());
    while let Some(told) = receipts.next().await? {
        for (row, receipts) in told {
            let answers: Vec<Answer> = receipts.iter().flat_map(answers).collect();
            if answers.is_empty() {
                continue;
            }
            let to = records
                .take(row)
                .await?
                .and_then(|record| record.phone)
                .map(|phone| phone.to_string())
                .unwrap_or_default();
            for Answer { channel, at, text, digit, media } in answers {
                let cells = [
                    name.as_str(),
                    &row.to_string(),
                    &to,
                    &harmless(channel),
                    &at,
                    &harmless(text),
                    &harmless(digit),
                    &harmless(media),
                ];
                csv.write_record(cells).map_err(unwritten)?;
                count += 1;
            }
        }
    }
    csv.flush().map_err(|error| ResultsError::Write { path: "-".into(), error })?;
    Ok(count)
}

/// One answer, as its cells.
struct Answer<'k> {
    channel: &'k str,
    at: String,
    text: &'k str,
    digit: &'k str,
    media: &'k str,
}

/// The answers that a receipt tells of: words, files, and digits that were pressed.
fn answers(kept: &KeptReceipt) -> impl Iterator<Item = Answer<'_>> {
    let receipt = &kept.receipt;
    let channel = receipt.channel.as_ref().map_or("", ReportedChannel::word);
    let replies = receipt.replies.iter().map(move |reply| Answer {
        channel,
        at: format!("{:.3}", reply.at.unwrap_or_else(|| kept.told_at())),
        text: &reply.text,
        digit: "",
        media: reply.media.as_ref().map_or("", |media| &media.url),
    });
    let digit = receipt.digit.as_deref().map(move |digit| Answer {
        channel,
        at: format!("{:.3}", kept.told_at()),
        text: "",
        digit,
        media: "",
    });
    replies.chain(digit)
}

fn unwritten(error: csv::Error) -> ResultsError {
    ResultsError::Write { path: "-".into(), error: error.into() }
}
