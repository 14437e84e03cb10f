//! Replies that look like an opt-out and were not taken as one, so that a person can decide about them.

use jiff::Timestamp;

use crate::domain::{OptOutWords, Phone, RecipientReply, ReplyReading, ReportedChannel, Row};
use crate::ledger::{Ledger, LedgerError, ReceiptReader, Run};

/// A reply to a message of a run that a person should read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnclearReply {
    /// The row of the message.
    pub row: Row,
    /// The recipient.
    pub phone: Phone,
    /// The channel, as the gateway reported it; empty if it reported none.
    pub channel: String,
    /// When the recipient replied.
    pub at: Timestamp,
    /// The text of the reply.
    pub text: String,
}

/// The replies to a run that look like an opt-out, of recipients who are not on the suppression list, in the order of the rows.
///
/// A clear opt-out is among them if an earlier version did not understand it. Nobody opts out in a rehearsal.
///
/// # Errors
/// When the ledger cannot be read, or the run was purged.
pub async fn find_unclear_replies(ledger: &dyn Ledger, run: &Run) -> Result<Vec<UnclearReply>, LedgerError> {
    LedgerError::refuse_purged(run)?;
    let (words, mut unclear) = (OptOutWords::default(), Vec::new());
    if !run.live || run.receipts == 0 {
        return Ok(unclear);
    }
    let mut receipts = ReceiptReader::new(ledger, run.key, run.last_row());
    let looks_like_one =
        |reply: &RecipientReply| words.read_reply(&reply.text, run.suppression.purpose) != ReplyReading::Other;
    while let Some(rows) = receipts.next_receipts().await? {
        for (row, receipts) in rows {
            if !receipts.iter().any(|kept| kept.receipt.replies.iter().any(looks_like_one)) {
                continue;
            }
            let Some(phone) = find_reachable_phone(ledger, run, row).await? else { continue };
            for kept in &receipts {
                let channel = kept.receipt.channel.as_ref().map_or("", ReportedChannel::as_str);
                for reply in kept.receipt.replies.iter().filter(|reply| looks_like_one(reply)) {
                    let at = reply.at.unwrap_or_else(|| kept.reported_at());
                    unclear.push(UnclearReply {
                        row,
                        phone,
                        channel: channel.to_owned(),
                        at,
                        text: reply.text.clone(),
                    });
                }
            }
        }
    }
    Ok(unclear)
}

/// The number that a row was sent to, unless it is forgotten or on the suppression list.
async fn find_reachable_phone(ledger: &dyn Ledger, run: &Run, row: Row) -> Result<Option<Phone>, LedgerError> {
    let Some(phone) = ledger.find_addressee(run.key, row).await?.and_then(|addressee| addressee.phone()) else {
        return Ok(None);
    };
    let opt_outs = ledger.find_opt_outs(phone).await?;
    let is_listed = opt_outs.iter().any(|opt_out| opt_out.applies_to(&run.campaign, run.suppression.loopback));
    Ok((!is_listed).then_some(phone))
}
