//! Columns of the results: the name of each column, and its value from the known facts about a row. This module does no
//! I/O.
//!
//! Programs read columns by name, so a column never changes its name, and new columns are appended.

use std::borrow::Cow;

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::earlier_messages::EarlierMessage;
use super::layout::{Layout, RowBuffer};
use super::listing::RowSelection;
use super::row_records::{Amendment, RowRecord};
use campaign_content::audience::{Chunk, ListHeader, PhoneColumns, RecordFields};
use campaign_core::domain::{
    Channel, FALLBACK_NOT_REPORTED, GatewayMessageId, OperationKind, OperationOutcome, Phone, Receipt, Region, Row,
    VariantAllocation,
};
use campaign_ledger::{ENDED_EARLY, RowChange, RowState, Run, RunActivity};
use campaign_manifest::CampaignBrief;

/// A column of the results. Result columns come before the columns of the recipient list.
pub(super) struct ResultColumn {
    pub(super) name: &'static str,
    value: for<'c> fn(&'c ResultCells<'_>) -> ColumnValue<'c>,
}

/// The value of a cell.
enum ColumnValue<'c> {
    /// A number, or empty.
    Number(Option<u64>),
    /// A text of digits only, or empty.
    Digits(Option<u64>),
    Text(&'c str),
}

/// The values of a row's cells. Empty texts have no value.
struct ResultCells<'k> {
    row: Row,
    id: Option<u64>,
    phone: Option<Phone>,
    state: RowState,
    kind: OperationKind,
    msg_id: Option<&'k GatewayMessageId>,
    request_id: &'k str,
    parts: Option<u32>,
    gateway_status: &'k str,
    reason: Cow<'k, str>,
    error: &'k str,
    submitted_at: &'k str,
    updated_at: Cow<'k, str>,
    delivered_by: &'k str,
    delivered_at: Cow<'k, str>,
    answer: &'k str,
    run: &'k str,
    delivered_at_is: &'k str,
    read_by: &'k str,
    message_run: &'k str,
    message_state: &'k str,
}

/// The columns, in order.
pub(super) const RESULT_COLUMNS: [ResultColumn; 21] = [
    // The row in the list; the header is row 1.
    ResultColumn { name: "row", value: |cells| ColumnValue::Number(Some(cells.row.get().into())) },
    // Our identifier of the last message; empty if there is none.
    ResultColumn { name: "id", value: |cells| ColumnValue::Number(cells.id) },
    // The phone number, digits only.
    ResultColumn { name: "to", value: |cells| ColumnValue::Digits(cells.phone.map(Phone::to_u64)) },
    ResultColumn { name: "state", value: |cells| ColumnValue::Text(cells.state.name()) },
    // The operation type; empty if the row is never sent.
    ResultColumn {
        name: "operation",
        value: |cells| match cells.state {
            RowState::Skipped | RowState::Invalid => ColumnValue::Text(""),
            _ => ColumnValue::Text(cells.kind.name()),
        },
    },
    // The gateway's identifier for the message.
    ResultColumn {
        name: "msg_id",
        value: |cells| match cells.msg_id {
            Some(GatewayMessageId::Number(number)) => ColumnValue::Digits(Some(*number)),
            Some(GatewayMessageId::Text(text)) => ColumnValue::Text(text),
            None => ColumnValue::Text(""),
        },
    },
    // The gateway's identifier for a queued request.
    ResultColumn { name: "request_id", value: |cells| ColumnValue::Text(cells.request_id) },
    // The billed parts of all messages of the row, as the gateway reported them.
    ResultColumn { name: "parts", value: |cells| ColumnValue::Number(cells.parts.map(u64::from)) },
    // The status in the gateway's words, if it reported one.
    ResultColumn { name: "gateway_status", value: |cells| ColumnValue::Text(cells.gateway_status) },
    // The reason for the state, in our words.
    ResultColumn { name: "reason", value: |cells| ColumnValue::Text(&cells.reason) },
    // The gateway's error text for a rejected message.
    ResultColumn { name: "error", value: |cells| ColumnValue::Text(cells.error) },
    // The times of the last attempt and of the last update, in UTC.
    ResultColumn { name: "submitted_at", value: |cells| ColumnValue::Text(cells.submitted_at) },
    ResultColumn { name: "updated_at", value: |cells| ColumnValue::Text(&cells.updated_at) },
    // The channel that delivered the message, and the time by the gateway's clock.
    ResultColumn { name: "delivered_by", value: |cells| ColumnValue::Text(cells.delivered_by) },
    ResultColumn { name: "delivered_at", value: |cells| ColumnValue::Text(&cells.delivered_at) },
    // The answer of a lookup or a code call, as JSON.
    ResultColumn { name: "answer", value: |cells| ColumnValue::Text(cells.answer) },
    // The run, such as `welcome@3`.
    ResultColumn { name: "run", value: |cells| ColumnValue::Text(cells.run) },
    // How certain `delivered_at` is: exact, at_latest or uncertain.
    ResultColumn { name: "delivered_at_is", value: |cells| ColumnValue::Text(cells.delivered_at_is) },
    // The channel that reported the message as read.
    ResultColumn { name: "read_by", value: |cells| ColumnValue::Text(cells.read_by) },
    // The run whose message has these identifiers, and the state of that message. If the row was skipped because its
    // recipient already has the message, these are the earlier run and the state of its message.
    ResultColumn { name: "message_run", value: |cells| ColumnValue::Text(cells.message_run) },
    ResultColumn { name: "message_state", value: |cells| ColumnValue::Text(cells.message_state) },
];

pub(super) const COLUMN_NAMES: [&str; RESULT_COLUMNS.len()] = {
    let mut names = [""; RESULT_COLUMNS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = RESULT_COLUMNS[at].name;
        at += 1;
    }
    names
};

/// The columns of the listed runs' recipient lists, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct RecipientColumns {
    columns: Vec<RecipientColumn>,
    /// Whether a listed run has variants. The variant column comes before the recipient columns.
    pub(super) has_variants: bool,
}

/// A column of a recipient list.
#[derive(Clone, Debug)]
struct RecipientColumn {
    /// The header, which can be empty.
    header: String,
    /// The key that distinguishes the column: its header, or its name if the header is empty.
    key: String,
}

impl RecipientColumns {
    /// Adds the columns of a list that are not included yet.
    pub(super) fn add_header(&mut self, header: &ListHeader) {
        let keys: Vec<String> = self.columns.iter().map(|column| column.key.clone()).collect();
        let new = header_columns(header).filter(|column| !keys.contains(&column.key));
        self.columns.extend(new);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The headers as written in the lists; several headers can be empty.
    pub(super) fn headers(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().map(|column| &column.header)
    }

    /// The keys of the columns, which are unique.
    pub(super) fn keys(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().map(|column| &column.key)
    }

    /// The position of each column in a list, or `None` if the list lacks the column.
    pub(super) fn find_positions(&self, header: &ListHeader) -> Vec<Option<usize>> {
        let listed: Vec<RecipientColumn> = header_columns(header).collect();
        self.columns.iter().map(|column| listed.iter().position(|other| other.key == column.key)).collect()
    }
}

fn header_columns(header: &ListHeader) -> impl Iterator<Item = RecipientColumn> {
    header.headers().iter().zip(header.names()).map(|(header, name)| RecipientColumn {
        header: header.clone(),
        key: if header.is_empty() { name } else { header }.clone(),
    })
}

/// Formats the rows of a listing, with everything that they have in common.
pub(super) struct RowFormatter {
    pub(super) layout: Layout,
    /// The position of each recipient column in this list.
    pub(super) recipient_positions: Vec<Option<usize>>,
    /// The variants of the campaign.
    pub(super) variants: VariantLookup,
    /// The operation type of unsent rows, in a campaign without variants.
    pub(super) kind: OperationKind,
    /// The run and its name; `None` for a dry run.
    pub(super) run: Option<(Run, String)>,
    /// Selects rows by condition.
    pub(super) selection: RowSelection,
    /// Selects rows by number; `None` for all rows.
    pub(super) only: Option<RoaringBitmap>,
    pub(super) region: Option<Region>,
    pub(super) phones: PhoneColumns,
    /// The activity of the run.
    pub(super) activity: RunActivity,
}

/// Finds the variant of a recipient.
pub(super) struct VariantLookup {
    allocation: VariantAllocation,
    /// The name and operation type of each variant; empty without variants.
    arms: Vec<(String, OperationKind)>,
    /// Whether the results have a variant column, because this or another listed run has variants.
    has_column: bool,
}

impl VariantLookup {
    /// The variants of a campaign.
    pub(super) fn from_brief(brief: &CampaignBrief, has_column: bool) -> Self {
        let arms = brief.list_arms();
        let arms = arms.iter().filter_map(|arm| Some((arm.name?.to_owned(), arm.content.kind))).collect();
        Self { allocation: brief.variant_allocation(), arms, has_column }
    }

    /// The name of a recipient's variant. `None` if the number is unknown, or if the campaign has no variants.
    pub(super) fn find_name(&self, phone: Option<Phone>) -> Option<&str> {
        self.find_variant(phone).map(|(name, _)| name.as_str())
    }

    /// The variant of a recipient. `None` if the number is unknown, or if the campaign has no variants.
    fn find_variant(&self, phone: Option<Phone>) -> Option<&(String, OperationKind)> {
        self.arms.get(phone.filter(|_| !self.arms.is_empty()).map(|phone| self.allocation.assign_variant(phone))?)
    }
}

/// The known facts about a row.
pub(super) struct RowFacts {
    /// The record of the row; `None` without an attempt.
    pub(super) record: Option<RowRecord>,
    pub(super) exclusion: Option<Exclusion>,
    /// The message of an earlier run that a skipped row refers to.
    pub(super) earlier: Option<EarlierMessage>,
}

/// The reason why a row is never sent.
pub(super) struct Exclusion {
    pub(super) state: RowState,
    pub(super) reason: String,
}

impl RowFacts {
    /// The state of the row, given the run's activity.
    pub(super) fn state(&self, activity: RunActivity) -> RowState {
        match &self.record {
            Some(record) => record.state,
            None => activity.unattempted_state(self.exclusion.as_ref().map(|exclusion| exclusion.state)),
        }
    }

    /// The phone number to which the row's message was sent or, if none was sent, a valid number in the list.
    pub(super) fn phone(
        &self,
        fields: RecordFields<'_>,
        columns: &PhoneColumns,
        region: Option<Region>,
    ) -> Option<Phone> {
        self.record.as_ref().map_or_else(|| columns.choose_phone(fields, region).ok(), |record| record.phone)
    }
}

impl RowFormatter {
    /// Formats the listed rows of a group; `facts` has an entry for each row.
    pub(super) fn format_rows(&self, chunk: &Chunk, facts: &[RowFacts]) -> Vec<u8> {
        let mut line = RowBuffer::new(&self.layout, chunk.len());
        for (record, facts) in chunk.iter().zip(facts) {
            let state = facts.state(self.activity);
            if self.is_listed(record.row, record.fields, facts, state) {
                line.begin_row();
                self.fill_row(&mut line, record.row, record.fields, facts, state);
                line.end_row();
            }
        }
        line.into_bytes()
    }

    /// Finds the listed rows of a group; `facts` has an entry for each row.
    pub(super) fn find_listed_rows(&self, chunk: &Chunk, facts: &[RowFacts]) -> Vec<Row> {
        let listed = chunk
            .iter()
            .zip(facts)
            .filter(|(record, facts)| self.is_listed(record.row, record.fields, facts, facts.state(self.activity)));
        listed.map(|(record, _)| record.row).collect()
    }

    /// Whether a row is listed.
    fn is_listed(&self, row: Row, fields: RecordFields<'_>, facts: &RowFacts, state: RowState) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(row.get()))
            && self.selection.matches(row, state, facts.record.as_ref())
            && (!self.selection.needs_cells() || {
                let cells = self.build_cells(row, fields, facts, state);
                self.selection.matches_cells(cells.phone, cells.error, cells.gateway_status)
            })
    }

    /// The identifier that the run or a retry order assigned to a row's message.
    fn message_id(&self, row: Row, order: Option<u32>) -> Option<u64> {
        let (run, _) = self.run.as_ref()?;
        Some(run.message_id(row, order)?.get())
    }

    fn fill_row(
        &self,
        line: &mut RowBuffer<'_>,
        row: Row,
        fields: RecordFields<'_>,
        facts: &RowFacts,
        state: RowState,
    ) {
        let cells = self.build_cells(row, fields, facts, state);
        for column in &RESULT_COLUMNS {
            match (column.value)(&cells) {
                ColumnValue::Number(number) => line.push_number(number),
                ColumnValue::Digits(number) => line.push_digits(number),
                ColumnValue::Text(text) => line.push_text(text),
            }
        }
        if self.variants.has_column {
            let has_message = !matches!(state, RowState::Skipped | RowState::Invalid);
            let variant = self.variants.find_variant(cells.phone.filter(|_| has_message));
            line.push_text(variant.map_or("", |(name, _)| name));
        }
        let positions = self.recipient_positions.iter();
        positions.for_each(|position| line.push_text(position.map_or("", |column| fields.get(column))));
    }

    fn build_cells<'k>(
        &'k self,
        row: Row,
        fields: RecordFields<'_>,
        facts: &'k RowFacts,
        state: RowState,
    ) -> ResultCells<'k> {
        let record = facts.record.as_ref();
        let settled = record.and_then(|record| record.settled.as_ref());
        let outcome = settled.map(|(_, outcome)| outcome);
        let amendment = record.and_then(|record| record.amendment.as_ref());
        let last_event = amendment.and_then(|amendment| amendment.last.as_ref());
        let OutcomeTexts { reason, error, request_id, answer } =
            outcome_texts(outcome, facts.exclusion.as_ref()).for_state(state);
        // A row can be skipped after an attempt.
        let exclusion = facts.exclusion.as_ref().filter(|_| state == RowState::Skipped);
        let reason = match (state, outcome, exclusion) {
            (RowState::InDoubt, None, _) => ENDED_EARLY,
            (RowState::Skipped, _, Some(exclusion)) => &exclusion.reason,
            // The list did not exclude the recipient: the run ended before the row was sent.
            (RowState::Skipped, _, None) => self.activity.skip_reason(),
            _ => reason,
        };
        let lacks_fallback = record.is_some_and(RowRecord::lacks_fallback_report);
        let reason = if lacks_fallback { FALLBACK_NOT_REPORTED } else { reason };
        let shown_amendment = amendment.filter(|_| state != RowState::Skipped && !lacks_fallback);
        let gateway_status = match last_event {
            Some((_, RowChange::Found { status, .. })) => status.as_str(),
            _ => "",
        };
        let summary = record.and_then(|record| record.receipt_summary.as_ref());
        let receipt = summary.map(|summary| &summary.last.receipt);
        let delivery = record.and_then(RowRecord::delivery);
        let channel = |channel: Option<Channel>| channel.map_or("", Channel::name);
        let last_change_at = last_event.map(|(at, _)| at).or(settled.map(|(at, _)| at)).map_or("", |at| at);
        let updated_at = match summary {
            Some(summary) => Cow::Owned(format_instant(summary.last.at)),
            None => Cow::Borrowed(last_change_at),
        };
        let phone = facts.phone(fields, &self.phones, self.region);
        let planned = || self.variants.find_variant(phone).map_or(self.kind, |(_, kind)| *kind);
        let own_run = self.run.as_ref().map_or("", |(_, name)| name);
        // A row without its own message refers to the message of an earlier run.
        let earlier = facts.earlier.as_ref().filter(|_| record.is_none());
        let (message_run, message_state) = match (record, earlier) {
            (Some(_), _) => (own_run, state.name()),
            (None, Some(earlier)) => (&*earlier.run, earlier.state.map_or("", RowState::name)),
            (None, None) => ("", ""),
        };
        ResultCells {
            row,
            id: record
                .and_then(|record| self.message_id(row, record.order()))
                .or_else(|| earlier.and_then(|earlier| Some(earlier.id?.get()))),
            phone,
            state,
            kind: record.map_or_else(planned, |record| record.kind),
            msg_id: record.and_then(RowRecord::msg_id).or_else(|| earlier.and_then(|earlier| earlier.msg_id.as_ref())),
            request_id: earlier.and_then(|earlier| earlier.request_id.as_deref()).unwrap_or(request_id),
            parts: record.and_then(|record| record.parts),
            gateway_status: receipt.map_or(gateway_status, |receipt| receipt.status.name()),
            reason: shown_amendment
                .map_or(Cow::Borrowed(reason), |amendment| describe_amendment(amendment, reason, state).into()),
            error: reported_error(receipt, state).unwrap_or(error),
            submitted_at: record.map_or("", |record| &record.submitted_at),
            updated_at,
            delivered_by: channel(delivery.and_then(|delivery| delivery.channel)),
            delivered_at: delivery.map(|delivery| format_instant(delivery.at)).unwrap_or_default().into(),
            answer,
            run: own_run,
            delivered_at_is: delivery.map_or("", |delivery| delivery.certainty.name()),
            read_by: channel(delivery.and_then(|delivery| delivery.read_by)),
            message_run,
            message_state,
        }
    }
}

/// The gateway's error in a receipt. `None` if only one channel failed, but the message did not.
pub(super) fn reported_error(receipt: Option<&Receipt>, state: RowState) -> Option<&str> {
    let receipt = receipt.filter(|receipt| state == RowState::Failed || !receipt.status.is_failure())?;
    receipt.error.as_deref()
}

/// Formats a time as RFC 3339 in UTC, with milliseconds.
fn format_instant(at: Timestamp) -> String {
    format!("{at:.3}")
}

#[derive(Default)]
struct OutcomeTexts<'a> {
    reason: &'a str,
    error: &'a str,
    request_id: &'a str,
    answer: &'a str,
}

impl OutcomeTexts<'_> {
    /// Removes texts that do not apply once a later state is proven: why the row was in doubt or not sent, and an
    /// earlier error.
    fn for_state(self, state: RowState) -> Self {
        let reason = if state.is_proven() { "" } else { self.reason };
        let error = if state.is_with_gateway() { "" } else { self.error };
        Self { reason, error, ..self }
    }
}

fn outcome_texts<'a>(outcome: Option<&'a OperationOutcome>, exclusion: Option<&'a Exclusion>) -> OutcomeTexts<'a> {
    let none = OutcomeTexts::default();
    match outcome {
        None => OutcomeTexts { reason: exclusion.map_or("", |exclusion| &exclusion.reason), ..none },
        Some(OperationOutcome::Accepted { answer, .. }) => {
            OutcomeTexts { answer: answer.as_deref().unwrap_or(""), ..none }
        }
        Some(OperationOutcome::Queued { request_id }) => OutcomeTexts { request_id, ..none },
        Some(OperationOutcome::Rejected { error }) => OutcomeTexts { error, ..none },
        Some(OperationOutcome::NotSent { reason } | OperationOutcome::InDoubt { reason }) => {
            OutcomeTexts { reason, ..none }
        }
    }
}

/// Describes why a row has its state after receipts, answers and decisions; `before` is why the row was in doubt or
/// rejected. Proof of the state replaces all decisions and all inquiries without a result.
fn describe_amendment(amendment: &Amendment, before: &str, state: RowState) -> String {
    let format_times = |times: &u32| if *times == 1 { "once".to_owned() } else { format!("{times} times") };
    let format_reason =
        |reason: &Option<String>| reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let last = amendment.last.as_ref().map(|(_, change)| change);
    let text = match last.filter(|change| !state.is_proven() || matches!(change, RowChange::Found { .. })) {
        None => before.to_owned(),
        Some(RowChange::Found { .. }) => "confirmed by the gateway".to_owned(),
        Some(RowChange::NotFound { asked: times }) => {
            let times = format_times(times);
            format!("{before}; not found: the gateway was asked {times} and has no record of the message")
        }
        Some(RowChange::Unresolved { asked: times }) => {
            format!("{before}; the gateway was asked {} but gave no conclusive response", format_times(times))
        }
        Some(RowChange::AssumedSent { by, why }) => format!("marked as sent by {by}{}", format_reason(why)),
        Some(RowChange::NotSent { by, why }) => format!("marked as not sent by {by}{}", format_reason(why)),
        Some(RowChange::SendAgain { by, why }) => {
            format!("another attempt was requested by {by}{}", format_reason(why))
        }
        Some(RowChange::Retry { by, .. }) => format!("a retry as a new message was requested by {by}"),
    };
    const DUPLICATE: &str = "duplicate suspected: an earlier attempt sent the message after all";
    match (amendment.duplicate, text.as_str()) {
        (false, _) => text,
        (true, "") => DUPLICATE.to_owned(),
        (true, text) => format!("{DUPLICATE}; {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_lists_every_column_in_order() {
        let document = include_str!("../../../../docs/results.md");
        let (_, table) = document.split_once("| column | |\n|---|---|\n").unwrap();
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|line| line.split('|').nth(1));
        // Several columns can share a row: `delivered_by`, `delivered_at`.
        let columns: Vec<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        assert_eq!(columns, COLUMN_NAMES);
    }
}
