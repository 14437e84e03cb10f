//! Compatibility with earlier versions: pipeline channels that an earlier version did not record, and events and
//! receipts in the form of the previous version. The functions are pure.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{NewReceipt, NewRowEvent, OptOut, OptOutScope, RowChange, SentRow};
use campaign_core::domain::{Chain, Channel, OperationKind, ReceiptSource, ReportedChannel, Status, VariantAllocation};

/// The channels of each variant of a run, and the allocation of recipients to variants.
///
/// Recovers pipeline channels that earlier versions did not record, from `frozen.json` in their format. Runs once, when
/// a migration adds the column `chains`.
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

/// Removes the channel from an event, because the previous version cannot read channels in events.
///
/// The previous version treats every failure as a failure of the whole message. Therefore a failure on one channel
/// becomes UNKNOWN, which is never final.
pub(super) fn rewrite_event(event: &mut NewRowEvent) {
    if let RowChange::Found { status, channel, .. } = &mut event.change
        && channel.take().is_some()
        && Status::from_name(status).is_failure()
    {
        Status::Unknown.name().clone_into(status);
    }
}

/// Limits an opt-out from all messages to marketing, because the previous version knows no other scope.
pub(super) fn rewrite_opt_out(opt_out: &mut OptOut) {
    if opt_out.scope == OptOutScope::All {
        opt_out.scope = OptOutScope::Marketing;
    }
}

/// Removes values from a receipt that the previous version cannot read: an unknown channel name, and the mark of a last
/// inquiry.
pub(super) fn rewrite_receipt(new: &mut NewReceipt) {
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
mod chain_tests {
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
mod rewrite_tests {
    use super::*;
    use crate::RunId;
    use campaign_core::domain::{Receipt, Row};

    fn found(status: &str, channel: &str) -> NewRowEvent {
        let (status, channel) = (status.to_owned(), ReportedChannel::parse(channel));
        NewRowEvent { row: Row::FIRST, envelope: 1, change: RowChange::Found { status, msg_id: None, channel } }
    }

    #[test]
    fn rewritten_event_makes_no_failure_final() {
        for (status, channel, expected) in
            [("EXPIRED", "viber", "UNKNOWN"), ("EXPIRED", "", "EXPIRED"), ("DELIVERED", "viber", "DELIVERED")]
        {
            let mut event = found(status, channel);
            rewrite_event(&mut event);
            assert_eq!(event, found(expected, ""), "{status} {channel}");
        }
    }

    #[test]
    fn rewritten_receipt_makes_no_failure_final() {
        for (channel, status, expected) in [
            ("MAX", Status::Expired, (None, Status::Unknown)),
            ("MAX", Status::Read, (None, Status::Read)),
            ("viber", Status::Expired, (ReportedChannel::parse("viber"), Status::Expired)),
        ] {
            let channel = ReportedChannel::parse(channel);
            let receipt = Receipt { channel, ..Receipt::new(ReceiptSource::AskedLast, status) };
            let mut new =
                NewReceipt { run: RunId(1), row: Row::FIRST, order: None, receipt, opt_out: None, opt_in: None };
            rewrite_receipt(&mut new);
            assert_eq!((new.receipt.channel, new.receipt.status), expected);
            assert_eq!(new.receipt.source, ReceiptSource::Asked);
        }
    }
}
