//! The stored form of records: rows and outcomes in postcard (variable-length integers, no names), row sets, and
//! checksums.
//!
//! This module also converts records between versions. It adds pipeline channels to envelopes of versions that did not
//! record them, and changes events, receipts and opt-outs so that earlier versions can read them.

use roaring::RoaringBitmap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::{LedgerError, NewReceipt, NewRowEvent, OptOut, OptOutScope, RowChange, SentRow};
use campaign_core::domain::{
    Amount, Chain, Channel, OperationKind, OperationOutcome, ParseAmountError, ReceiptSource, ReportedChannel, Status,
    VariantAllocation,
};

/// More rows than any envelope has. A damaged record must not exhaust the memory.
const MAX_ENVELOPE_ROWS: usize = 1_000_000;

/// Encodes a list.
pub(crate) fn pack_list<T: Serialize>(list: &[T]) -> Result<Vec<u8>, LedgerError> {
    postcard::to_stdvec(list).map_err(|error| LedgerError::Unreadable(error.to_string()))
}

/// Decodes a list.
pub(crate) fn unpack_list<T: DeserializeOwned>(bytes: &[u8]) -> Result<Vec<T>, LedgerError> {
    postcard::from_bytes(bytes).map_err(|error| LedgerError::Unreadable(error.to_string()))
}

/// Encodes the outcomes of an envelope. Equal neighbours are stored once with their count.
pub(crate) fn pack_outcomes(outcomes: &[OperationOutcome]) -> Result<Vec<u8>, LedgerError> {
    let groups: Vec<(usize, &OperationOutcome)> =
        outcomes.chunk_by(|one, next| one == next).map(|chunk| (chunk.len(), &chunk[0])).collect();
    pack_list(&groups)
}

/// Decodes outcomes.
pub(crate) fn unpack_outcomes(bytes: &[u8]) -> Result<Vec<OperationOutcome>, LedgerError> {
    let groups: Vec<(usize, OperationOutcome)> = unpack_list(bytes)?;
    if groups.iter().any(|(count, _)| *count > MAX_ENVELOPE_ROWS) {
        return Err(LedgerError::Unreadable("a request has too many rows".to_owned()));
    }
    Ok(groups.into_iter().flat_map(|(count, outcome)| std::iter::repeat_n(outcome, count)).collect())
}

/// Encodes the costs of an envelope's rows. Equal neighbours are stored once with their count. `None` if there are no
/// costs.
pub(crate) fn pack_costs(costs: &[Amount]) -> Result<Option<Vec<u8>>, LedgerError> {
    if costs.is_empty() {
        return Ok(None);
    }
    let groups: Vec<(usize, String)> =
        costs.chunk_by(|one, next| one == next).map(|chunk| (chunk.len(), chunk[0].to_json_digits())).collect();
    pack_list(&groups).map(Some)
}

/// Decodes costs.
pub(crate) fn unpack_costs(bytes: &[u8]) -> Result<Vec<Amount>, LedgerError> {
    let groups: Vec<(usize, String)> = unpack_list(bytes)?;
    let mut costs = Vec::new();
    for (count, digits) in groups {
        let cost = parse_amount(&digits)?;
        if count > MAX_ENVELOPE_ROWS {
            return Err(LedgerError::Unreadable("a request has too many rows".to_owned()));
        }
        costs.extend(std::iter::repeat_n(cost, count));
    }
    Ok(costs)
}

/// The channels of an envelope's pipelines as text: `viber sms`, or `viber sms*12, sms viber*3` if they differ. `None`
/// if the channels are unknown or follow from the operation type.
pub(crate) fn format_chains(rows: &[SentRow]) -> Option<String> {
    let groups: Vec<&[SentRow]> = rows.chunk_by(|one, next| one.chain == next.chain).collect();
    match groups[..] {
        [] => None,
        [group] => group[0].chain.is_known().then(|| group[0].chain.to_string()),
        _ => {
            let format_group = |group: &&[SentRow]| format!("{}*{}", group[0].chain, group.len());
            Some(groups.iter().map(format_group).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Parses stored channels and assigns them to rows.
pub(crate) fn parse_chains(text: &str, rows: &mut [SentRow]) -> Result<(), LedgerError> {
    let unreadable = || LedgerError::Unreadable(format!("`{text}` does not name the channels of {} rows", rows.len()));
    let mut chains: Vec<Chain> = Vec::with_capacity(rows.len());
    for group in text.split(',') {
        let (names, count) = match group.rsplit_once('*') {
            Some((names, count)) => (names, count.parse().ok().filter(|count| *count <= rows.len())),
            None => (group, Some(rows.len())),
        };
        let chain: Chain = names.parse().map_err(|()| unreadable())?;
        chains.extend(std::iter::repeat_n(chain, count.ok_or_else(unreadable)?));
    }
    if chains.len() != rows.len() {
        return Err(unreadable());
    }
    rows.iter_mut().zip(chains).for_each(|(sent, chain)| sent.chain = chain);
    Ok(())
}

pub(crate) fn parse_amount(digits: &str) -> Result<Amount, LedgerError> {
    digits.parse().map_err(|ParseAmountError| LedgerError::Unreadable(format!("`{digits}` is not an amount")))
}

/// Encodes a set of rows in the portable Roaring format.
pub(crate) fn pack_set(rows: &RoaringBitmap) -> Result<Vec<u8>, LedgerError> {
    let mut bytes = Vec::with_capacity(rows.serialized_size());
    rows.serialize_into(&mut bytes).map_err(|error| LedgerError::Unreadable(error.to_string()))?;
    Ok(bytes)
}

/// Decodes a set of rows.
pub(crate) fn unpack_set(bytes: &[u8]) -> Result<RoaringBitmap, LedgerError> {
    RoaringBitmap::deserialize_from(bytes).map_err(|error| LedgerError::Unreadable(error.to_string()))
}

/// The checksum of a record over its columns, in order. It detects damaged records.
pub(crate) struct Checksum(Sha256);

impl Checksum {
    /// A checksum for records of a table.
    pub(crate) fn for_table(table: &str) -> Self {
        Self(Sha256::new()).with_text(table)
    }

    /// Adds an integer.
    pub(crate) fn with_number(mut self, number: impl Into<i64>) -> Self {
        self.0.update(number.into().to_le_bytes());
        self
    }

    /// Adds bytes.
    pub(crate) fn with_bytes(mut self, bytes: &[u8]) -> Self {
        // The length prefix distinguishes different splits into columns.
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds a text.
    pub(crate) fn with_text(self, text: &str) -> Self {
        self.with_bytes(text.as_bytes())
    }

    /// The first eight bytes of the hash, as stored.
    pub(crate) fn finish(self) -> i64 {
        let hash = self.0.finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        i64::from_le_bytes(first)
    }

    /// Whether a record is unchanged. Records without a checksum are from an early version and count as unchanged.
    pub(crate) fn matches(self, stored: Option<i64>) -> bool {
        stored.is_none_or(|stored| stored == self.finish())
    }
}

/// The channels of each variant of a run, and the allocation of recipients to variants.
///
/// Recovers pipeline channels that earlier versions did not record, from the frozen inputs in their format. Used once,
/// when a migration adds the column `chains`.
pub(super) struct EarlierChains {
    chains: Vec<Chain>,
    allocation: VariantAllocation,
}

#[derive(Deserialize)]
struct EarlierInputs {
    brief: EarlierCampaign,
}

#[derive(Deserialize)]
struct EarlierCampaign {
    name: String,
    content: EarlierContent,
    #[serde(default)]
    variants: Vec<EarlierVariant>,
}

#[derive(Deserialize)]
struct EarlierVariant {
    /// In hundredths of a percent.
    share: u64,
    content: Option<EarlierContent>,
}

#[derive(Deserialize)]
struct EarlierContent {
    kind: OperationKind,
    stages: Vec<Map<String, Value>>,
}

impl EarlierContent {
    fn chain(&self) -> Chain {
        if self.kind != OperationKind::Pipeline {
            return Chain::UNKNOWN;
        }
        let names = self.stages.iter().filter_map(|stage| stage.keys().next());
        Chain::from_channels(names.filter_map(|name| Channel::from_name(name)))
    }
}

impl EarlierChains {
    /// Parses the channels of pipelines from the frozen inputs of a run. `None` if the inputs cannot be read.
    pub(super) fn parse(frozen: &[u8]) -> Option<Self> {
        let EarlierCampaign { name, content, variants } = serde_json::from_slice::<EarlierInputs>(frozen).ok()?.brief;
        let shares: Vec<u64> = variants.iter().map(|variant| variant.share).collect();
        let common = content.chain();
        let chains = match variants[..] {
            [] => vec![common],
            _ => {
                variants.iter().map(|variant| variant.content.as_ref().map_or(common, EarlierContent::chain)).collect()
            }
        };
        Some(Self { chains, allocation: VariantAllocation::new(&name, &shares) })
    }

    /// The channels of a row's pipeline. The channels are unknown if they depend on a number that was forgotten.
    fn find_chain(&self, sent: &SentRow) -> Chain {
        // Variants of other kinds are in other envelopes.
        let mut pipelines = self.chains.iter().filter(|chain| chain.is_known());
        match (pipelines.next(), sent.to.phone()) {
            (Some(first), _) if pipelines.all(|chain| chain == first) => *first,
            (_, Some(phone)) => self.chains.get(self.allocation.assign_variant(phone)).copied().unwrap_or_default(),
            (_, None) => Chain::UNKNOWN,
        }
    }

    /// Assigns channels to the rows of a pipeline envelope.
    pub(super) fn assign_chains(&self, rows: &mut [SentRow]) {
        rows.iter_mut().for_each(|sent| sent.chain = self.find_chain(sent));
    }
}

/// Removes the channel from an event, for tables that versions without channels in events might still use.
///
/// Those versions treat every failure as a failure of the whole message. Therefore a failure on one channel becomes
/// UNKNOWN, which is never final.
pub(super) fn downgrade_event(event: &mut NewRowEvent) {
    if let RowChange::Found { status, channel, .. } = &mut event.change
        && channel.take().is_some()
        && Status::from_name(status).is_failure()
    {
        Status::Unknown.name().clone_into(status);
    }
}

/// Limits an opt-out from all messages to marketing, for tables that versions without the scope might still use.
pub(super) fn downgrade_opt_out(opt_out: &mut OptOut) {
    if opt_out.scope == OptOutScope::All {
        opt_out.scope = OptOutScope::Marketing;
    }
}

/// Removes the values of a receipt that some earlier versions cannot read: an unknown channel name, and the source
/// `AskedLast`. A failure on a removed channel becomes UNKNOWN, which is never final.
pub(super) fn downgrade_receipt(new: &mut NewReceipt) {
    let receipt = &mut new.receipt;
    if receipt.source == ReceiptSource::AskedLast {
        receipt.source = ReceiptSource::Asked;
    }
    if matches!(receipt.channel, Some(ReportedChannel::Other(_))) {
        receipt.channel = None;
        if receipt.status.is_failure() {
            receipt.status = Status::Unknown;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_covers_every_column_and_its_boundary() {
        let sum = |first: &str, second: &str| Checksum::for_table("a").with_text(first).with_text(second).finish();
        let same = sum("ab", "c");
        assert_eq!(same, sum("ab", "c"));
        for other in [sum("a", "bc"), sum("ab", "d"), Checksum::for_table("b").with_text("ab").with_text("c").finish()]
        {
            assert_ne!(same, other);
        }
        assert!(
            Checksum::for_table("a").with_number(7).matches(Some(Checksum::for_table("a").with_number(7).finish()))
        );
        assert!(
            !Checksum::for_table("a").with_number(8).matches(Some(Checksum::for_table("a").with_number(7).finish()))
        );
        assert!(Checksum::for_table("a").matches(None));
    }
}

#[cfg(test)]
mod earlier_version_tests {
    use super::*;
    use campaign_core::domain::{Addressee, Phone, Row};

    const SMS: &str = r#"{"kind": "pipeline", "stages": [{"viber": {}}, {"sms": {}}]}"#;
    const VOICE: &str = r#"{"kind": "pipeline", "stages": [{"viber": {}}, {"voice": {}}]}"#;
    const COMBINED: &str = r#"{"kind": "viber+sms", "stages": [{"viber": {}}, {"sms": {}}]}"#;

    fn frozen(content: &str, variants: &[&str]) -> EarlierChains {
        let variants: Vec<String> =
            variants.iter().map(|content| format!(r#"{{"share": 5000, "content": {content}}}"#)).collect();
        let variants = variants.join(", ");
        let json = format!(r#"{{"brief": {{"name": "sale", "content": {content}, "variants": [{variants}]}}}}"#);
        EarlierChains::parse(json.as_bytes()).unwrap()
    }

    fn chain(frozen: &EarlierChains, to: Addressee) -> String {
        let mut rows = [SentRow { row: Row::FIRST, to, digest: [0; 8], chain: Chain::UNKNOWN }];
        frozen.assign_chains(&mut rows);
        rows[0].chain.to_string()
    }

    #[test]
    fn row_has_the_channels_of_its_variant() {
        let addressee = |n: u64| Addressee::from(Phone::new(380_501_234_000 + n).unwrap());
        assert_eq!(chain(&frozen(SMS, &[]), addressee(1)), "viber sms");
        let two = frozen(SMS, &[SMS, VOICE]);
        let channels: std::collections::BTreeSet<String> = (0..40).map(|n| chain(&two, addressee(n))).collect();
        assert_eq!(channels.into_iter().collect::<Vec<_>>(), ["viber sms", "viber voice"]);
    }

    #[test]
    fn forgotten_row_has_the_channels_shared_by_all_pipelines() {
        let forgotten = Addressee::Forgotten(campaign_core::domain::ForgottenNumber::from_hash([7; 8]));
        assert_eq!(chain(&frozen(SMS, &[SMS, SMS]), forgotten), "viber sms");
        assert_eq!(chain(&frozen(SMS, &[VOICE, COMBINED]), forgotten), "viber voice");
        assert_eq!(chain(&frozen(SMS, &[SMS, VOICE]), forgotten), "");
    }
}

#[cfg(test)]
mod downgrade_tests {
    use super::*;
    use crate::RunId;
    use campaign_core::domain::{Receipt, Row};

    fn found(status: &str, channel: &str) -> NewRowEvent {
        let (status, channel) = (status.to_owned(), ReportedChannel::parse(channel));
        NewRowEvent { row: Row::FIRST, envelope: 1, change: RowChange::Found { status, msg_id: None, channel } }
    }

    #[test]
    fn downgraded_failure_on_a_channel_is_unknown() {
        for (status, channel, expected) in
            [("EXPIRED", "viber", "UNKNOWN"), ("EXPIRED", "", "EXPIRED"), ("DELIVERED", "viber", "DELIVERED")]
        {
            let mut event = found(status, channel);
            downgrade_event(&mut event);
            assert_eq!(event, found(expected, ""), "{status} {channel}");
        }
    }

    #[test]
    fn downgraded_failure_on_an_unknown_channel_is_unknown() {
        for (channel, status, expected) in [
            ("MAX", Status::Expired, (None, Status::Unknown)),
            ("MAX", Status::Read, (None, Status::Read)),
            ("viber", Status::Expired, (ReportedChannel::parse("viber"), Status::Expired)),
        ] {
            let channel = ReportedChannel::parse(channel);
            let receipt = Receipt { channel, ..Receipt::new(ReceiptSource::AskedLast, status) };
            let mut new =
                NewReceipt { run: RunId(1), row: Row::FIRST, order: None, receipt, opt_out: None, opt_in: None };
            downgrade_receipt(&mut new);
            assert_eq!((new.receipt.channel, new.receipt.status), expected);
            assert_eq!(new.receipt.source, ReceiptSource::Asked);
        }
    }
}
