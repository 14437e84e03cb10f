//! Replies of recipients as CSV, replies that might be opt-outs, and exports of the suppression list.

use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::layout::escape_formula;
use super::{ResultsError, RowRecords, is_owned};
use campaign_core::domain::{FORGOTTEN, Media, OptOutWords, Phone, Receipt, RecipientReply, ReportedChannel, Row};
use campaign_ledger::{
    EndedOptOut, Ledger, LedgerError, OptOut, OptOutEnd, OptOutFilter, ReceiptReader, Run, StoredReceipt, reply_source,
};

/// The columns of exported replies.
const HEADER: [&str; 8] = ["run", "row", "to", "channel", "at", "text", "digit", "media"];

/// Writes the replies to a run's messages in row order. Returns the number of replies that were written.
///
/// # Errors
/// If the ledger cannot be read, or `out` cannot be written.
pub async fn write_replies(ledger: &dyn Ledger, run: &Run, out: impl Write) -> Result<u64, ResultsError> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(HEADER).map_err(csv_write_error)?;
    let mut records = RowRecords::open(ledger, run, is_owned(ledger, run).await?).await?;
    let (name, mut count) = (run.name(), 0);
    let mut receipts = ReceiptReader::new(ledger, run.key, run.last_row());
    while let Some(rows) = receipts.next_receipts().await? {
        for (row, receipts) in rows {
            let replies = collect_replies(&receipts);
            if replies.is_empty() {
                continue;
            }
            let to = records
                .take_record(row)
                .await?
                .and_then(|record| record.phone)
                .map(|phone| phone.to_string())
                .unwrap_or_default();
            for MessageReply { channel, at, text, digit, media } in replies {
                let cells = [
                    name.as_str(),
                    &row.to_string(),
                    &to,
                    &escape_formula(channel),
                    &format!("{at:.3}"),
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

/// A reply to a message: a text, a file, or a pressed digit.
struct MessageReply<'k> {
    channel: &'k str,
    /// The time of the reply, as precisely as known.
    at: Timestamp,
    text: &'k str,
    digit: &'k str,
    /// The URL of the file.
    media: &'k str,
}

impl MessageReply<'_> {
    /// Whether two receipts for a message contain the same reply.
    fn is_same(&self, other: &Self) -> bool {
        let Self { channel: _, at, text, digit, media } = *self;
        (at, text, digit, media) == (other.at, other.text, other.digit, other.media)
    }
}

/// Collects the replies to a message from its receipts. Each receipt can repeat earlier replies, so each reply is
/// collected once.
fn collect_replies(receipts: &[StoredReceipt]) -> Vec<MessageReply<'_>> {
    let mut replies: Vec<MessageReply<'_>> = Vec::new();
    for reply in receipts.iter().flat_map(extract_replies) {
        if !replies.iter().any(|known| known.is_same(&reply)) {
            replies.push(reply);
        }
    }
    replies
}

/// The replies in a receipt: texts, files, and pressed digits.
fn extract_replies(stored: &StoredReceipt) -> impl Iterator<Item = MessageReply<'_>> {
    // The delivery status is in the results.
    let Receipt {
        source: _,
        status: _,
        channel,
        updated: _,
        msg_id: _,
        request_id: _,
        error: _,
        digit,
        duration: _,
        replies,
    } = &stored.receipt;
    let channel = channel.as_ref().map_or("", ReportedChannel::as_str);
    let replies = replies.iter().map(move |RecipientReply { at, text, media }| MessageReply {
        channel,
        at: at.unwrap_or_else(|| stored.reported_at()),
        text,
        digit: "",
        media: media.as_ref().map_or("", |Media { url, filename: _, filesize: _ }| url),
    });
    let at = stored.reported_at();
    let digit = digit.as_deref().map(move |digit| MessageReply { channel, at, text: "", digit, media: "" });
    replies.chain(digit)
}

fn csv_write_error(error: csv::Error) -> ResultsError {
    ResultsError::Write { path: "-".into(), error: to_io_error(error) }
}

/// Converts an error of the CSV writer. Unlike `into`, this keeps the kind of the error, such as `BrokenPipe`.
fn to_io_error(error: csv::Error) -> io::Error {
    match error.kind() {
        csv::ErrorKind::Io(io_error) => io::Error::new(io_error.kind(), error),
        _ => io::Error::other(error),
    }
}

/// A reply to a message of a run that a person should read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnclearReply {
    /// The row of the message.
    pub row: Row,
    /// The recipient.
    pub phone: Phone,
    /// The channel, as the gateway reported it; empty if it reported none.
    pub channel: String,
    /// The time of the reply.
    pub at: Timestamp,
    /// The text of the reply.
    pub text: String,
}

/// Finds replies to a run that look like opt-outs, from recipients who are not on the suppression list, in row order.
///
/// The replies include clear opt-outs that an earlier version did not understand. Replies to rehearsals never count.
///
/// # Errors
/// If the ledger cannot be read, or the run was purged.
pub async fn find_unclear_replies(ledger: &dyn Ledger, run: &Run) -> Result<Vec<UnclearReply>, LedgerError> {
    LedgerError::refuse_purged(run)?;
    let (words, mut unclear) = (OptOutWords::default(), Vec::new());
    if !run.live || run.receipts == 0 {
        return Ok(unclear);
    }
    let mut receipts = ReceiptReader::new(ledger, run.key, run.last_row());
    let looks_like_opt_out =
        |reply: &MessageReply<'_>| words.classify_reply(reply.text, run.suppression.purpose).may_opt_out();
    while let Some(rows) = receipts.next_receipts().await? {
        for (row, receipts) in rows {
            let replies = collect_replies(&receipts);
            if !replies.iter().any(looks_like_opt_out) {
                continue;
            }
            let Some(phone) = find_reachable_phone(ledger, run, row).await? else { continue };
            let opt_ins = replies.iter().filter(|reply| words.find_opt_in_word(reply.text).is_some());
            let opt_in_reply_at = opt_ins.map(|reply| reply.at).max();
            let ended = ledger.find_ended_opt_outs(phone).await?;
            let end_times =
                ended.iter().filter(|ended| ended.end.by.starts_with(&reply_source(""))).map(|ended| ended.end.at);
            let opted_in_at = end_times.max().max(opt_in_reply_at);
            let is_open = |reply: &MessageReply<'_>| opted_in_at.is_none_or(|at| reply.at >= at);
            let replies = replies.iter().filter(|reply| looks_like_opt_out(reply) && is_open(reply));
            unclear.extend(replies.map(|MessageReply { channel, at, text, .. }| UnclearReply {
                row,
                phone,
                channel: (*channel).to_owned(),
                at: *at,
                text: (*text).to_owned(),
            }));
        }
    }
    Ok(unclear)
}

/// The phone number to which a row's message was sent, unless the number is erased or on the suppression list.
async fn find_reachable_phone(ledger: &dyn Ledger, run: &Run, row: Row) -> Result<Option<Phone>, LedgerError> {
    let Some(phone) = ledger.find_addressee(run.key, row).await?.and_then(|addressee| addressee.phone()) else {
        return Ok(None);
    };
    let opt_outs = ledger.find_opt_outs(phone).await?;
    let is_listed =
        opt_outs.iter().any(|opt_out| opt_out.applies_to_marketing(&run.campaign, run.suppression.loopback));
    Ok((!is_listed).then_some(phone))
}

/// The columns of an export. An import recognizes them.
pub const OPT_OUT_COLUMNS: [&str; 6] = ["phone", "scope", "reason", "source", "at", "gateways"];

/// The maximum number of opt-outs that are read at once.
const PAGE_SIZE: u32 = 10_000;

/// An error while exporting opt-outs.
#[derive(Debug, thiserror::Error)]
pub enum OptOutExportError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Visits all opt-outs, or the opt-outs of one campaign, in the order in which they arrived. Returns how many opt-outs
/// were visited.
///
/// # Errors
/// If the ledger cannot be read, or if `visit` returns an error.
pub async fn for_each_opt_out(
    ledger: &dyn Ledger,
    campaign: Option<&str>,
    mut visit: impl FnMut(&OptOut) -> io::Result<()>,
) -> Result<u64, OptOutExportError> {
    let (mut after, mut count) = (None, 0);
    loop {
        let page = ledger.list_opt_outs(OptOutFilter::Listed { behind: after, at_most: PAGE_SIZE }).await?;
        let is_selected = |opt_out: &&OptOut| campaign.is_none() || opt_out.scope.campaign() == campaign;
        for opt_out in page.entries.iter().map(|record| &record.opt_out).filter(is_selected) {
            visit(opt_out)?;
            count += 1;
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(count),
        }
    }
}

/// Writes the opt-outs as CSV, except opt-outs whose phone numbers were erased. Returns how many opt-outs were written.
///
/// # Errors
/// If the ledger cannot be read, or `out` cannot be written.
pub async fn export_opt_outs(
    ledger: &dyn Ledger,
    campaign: Option<&str>,
    out: impl Write,
) -> Result<u64, OptOutExportError> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(OPT_OUT_COLUMNS).map_err(to_io_error)?;
    let mut count = 0;
    for_each_opt_out(ledger, campaign, |OptOut { who, scope, reach, reason, source, at }| {
        let Some(phone) = who.phone() else { return Ok(()) };
        count += 1;
        let (phone, scope, at) = (format!("+{phone}"), scope.to_string(), format!("{at:.3}"));
        let (reason, source) = (escape_formula(reason), escape_formula(source));
        csv.write_record([&phone, &scope, &*reason, &*source, &at, reach.name()]).map_err(to_io_error)
    })
    .await?;
    csv.flush()?;
    Ok(count)
}

/// The opt-outs of a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptOutHistory {
    /// The opt-outs on the suppression list.
    pub listed: Vec<OptOut>,
    /// The opt-outs that were removed or ended by a reply, oldest first.
    pub ended: Vec<EndedOptOut>,
}

impl OptOutHistory {
    /// Loads the current and the ended opt-outs of a phone number.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load(ledger: &dyn Ledger, phone: Phone) -> Result<Self, LedgerError> {
        let (listed, ended) = (ledger.find_opt_outs(phone).await?, ledger.find_ended_opt_outs(phone).await?);
        Ok(Self { listed, ended })
    }

    /// The opt-outs on the suppression list, as JSON.
    pub fn listed_json(&self) -> Vec<Value> {
        self.listed.iter().map(opt_out_json).collect()
    }

    /// The opt-outs that have ended, as JSON.
    pub fn ended_json(&self) -> Vec<Value> {
        let to_json = |EndedOptOut { opt_out, end: OptOutEnd { at, by, why } }: &EndedOptOut| {
            let mut object = opt_out_json(opt_out);
            object["ended"] = json!({ "at": format!("{at:.3}"), "by": by, "why": why });
            object
        };
        self.ended.iter().map(to_json).collect()
    }
}

/// An opt-out as JSON.
pub fn opt_out_json(opt_out: &OptOut) -> Value {
    let OptOut { who, scope, reach, reason, source, at } = opt_out;
    let phone = who.phone().map_or_else(|| FORGOTTEN.to_owned(), |phone| phone.to_string());
    json!({
        "phone": phone, "scope": scope.to_string(), "reason": **reason, "source": **source,
        "at": format!("{at:.3}"), "gateways": reach.name(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe without a reader.
    struct ClosedPipe;

    impl Write for ClosedPipe {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn closed_pipe_keeps_its_error_kind() {
        let long = "x".repeat(100_000);
        let error = csv::Writer::from_writer(ClosedPipe).write_record([long]).unwrap_err();
        let ResultsError::Write { error, .. } = csv_write_error(error) else { panic!("another error") };
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
