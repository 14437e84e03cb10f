//! The rows of the results: what is known of a row, as cells. Pure.

use std::borrow::Cow;

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::columns::{Cells, TABLE, Value};
use super::earlier_messages::EarlierMessage;
use super::layout::{Layout, Line};
use super::row_records::{Amendment, RowRecord};
use super::row_selection::RowSelection;
use crate::audience::{Chunk, Fields, PhoneColumns};
use crate::domain::{Allotment, Channel, FALLBACK_NOT_REPORTED, OperationKind, Outcome, Phone, Receipt, Region, Row};
use crate::ledger::{Activity, Change, ENDED_EARLY, Run, State};
use crate::manifest::Brief;

/// What all rows of a listing share.
pub(super) struct RowWriter {
    pub(super) layout: Layout,
    /// Where this list has each of the recipients' own columns.
    pub(super) own: Vec<Option<usize>>,
    /// Who gets which of the variants.
    pub(super) parts: PartsOfPeople,
    /// What a row that was not sent yet would be sent as, in a campaign without variants.
    pub(super) kind: OperationKind,
    /// The run and its name; nothing for a dry run.
    pub(super) run: Option<(Run, String)>,
    /// Only the rows that match it.
    pub(super) selection: RowSelection,
    /// Only these rows; all where there is nothing.
    pub(super) only: Option<RoaringBitmap>,
    pub(super) region: Option<Region>,
    pub(super) phones: PhoneColumns,
    /// What the run is doing.
    pub(super) activity: Activity,
}

/// Who gets which of the variants.
pub(super) struct PartsOfPeople {
    allotment: Allotment,
    /// The name and the kind of each variant; none for a campaign without.
    arms: Vec<(String, OperationKind)>,
    /// Whether the variants have a column, which other runs that are listed beside may need.
    shown: bool,
}

impl PartsOfPeople {
    /// Those of a campaign.
    pub(super) fn of(brief: &Brief, shown: bool) -> Self {
        let arms = brief.arms();
        let arms = arms.iter().filter_map(|arm| Some((arm.name?.to_owned(), arm.content.kind))).collect();
        Self { allotment: brief.allotment(), arms, shown }
    }

    /// The variant of somebody who gets a message.
    fn variant(&self, phone: Option<Phone>) -> Option<&(String, OperationKind)> {
        self.arms.get(phone.filter(|_| !self.arms.is_empty()).map(|phone| self.allotment.variant(phone))?)
    }
}

/// All that is known of one row.
pub(super) struct RowFacts {
    /// What became of it; nothing for a row without an attempt.
    pub(super) record: Option<RowRecord>,
    pub(super) exclusion: Option<Exclusion>,
    /// The message of an earlier run that a skipped row refers to.
    pub(super) earlier: Option<EarlierMessage>,
}

/// Why a row is never sent.
pub(super) struct Exclusion {
    pub(super) state: State,
    pub(super) reason: String,
}

impl RowFacts {
    /// The state of the row, in a run that is doing that.
    pub(super) fn state(&self, activity: Activity) -> State {
        match &self.record {
            Some(record) => record.state,
            None => activity.unattempted(self.exclusion.as_ref().map(|exclusion| exclusion.state)),
        }
    }

    /// The number it went to, or the one that stands in the list, if it is one.
    pub(super) fn phone(&self, own: Fields<'_>, columns: &PhoneColumns, region: Option<Region>) -> Option<Phone> {
        self.record.as_ref().map_or_else(|| columns.phone(own, region).ok(), |record| record.phone)
    }
}

impl RowWriter {
    /// The rows of a group of records as they are written; `facts` has an entry for each.
    pub(super) fn lines(&self, chunk: &Chunk, facts: &[RowFacts]) -> Vec<u8> {
        let mut line = Line::new(&self.layout, chunk.len());
        for (record, facts) in chunk.iter().zip(facts) {
            let state = facts.state(self.activity);
            if self.lists((record.row, record.fields), facts, state) {
                line.begin();
                self.fill(&mut line, (record.row, record.fields), facts, state);
                line.end();
            }
        }
        line.finish()
    }

    /// The rows of a group of records that are listed; `facts` has an entry for each.
    pub(super) fn listed_rows(&self, chunk: &Chunk, facts: &[RowFacts]) -> Vec<Row> {
        let listed = chunk
            .iter()
            .zip(facts)
            .filter(|(record, facts)| self.lists((record.row, record.fields), facts, facts.state(self.activity)));
        listed.map(|(record, _)| record.row).collect()
    }

    /// Whether a row is listed.
    fn lists(&self, (row, own): (Row, Fields<'_>), facts: &RowFacts, state: State) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(row.get()))
            && self.selection.matches(row, state, facts.record.as_ref())
            && (!self.selection.needs_cells() || {
                let cells = self.cells((row, own), facts, state);
                self.selection.matches_cells(cells.phone, cells.error, cells.gateway_status)
            })
    }

    /// Our identifier of a row's message, of the run itself or of an order to send again.
    fn id(&self, row: Row, order: Option<u32>) -> Option<u64> {
        let (run, _) = self.run.as_ref()?;
        Some(run.id(row, order)?.get())
    }

    fn fill(&self, line: &mut Line<'_>, (row, own): (Row, Fields<'_>), facts: &RowFacts, state: State) {
        let cells = self.cells((row, own), facts, state);
        for column in &TABLE {
            match (column.value)(&cells) {
                Value::Number(number) => line.number(number),
                Value::Digits(number) => line.digits(number),
                Value::Text(text) => line.cell(text),
            }
        }
        if self.parts.shown {
            let gets_one = !matches!(state, State::Skipped | State::Invalid);
            let variant = self.parts.variant(cells.phone.filter(|_| gets_one));
            line.cell(variant.map_or("", |(name, _)| name));
        }
        self.own.iter().for_each(|place| line.cell(place.map_or("", |column| own.get(column))));
    }

    fn cells<'k>(&'k self, (row, own): (Row, Fields<'_>), facts: &'k RowFacts, state: State) -> Cells<'k> {
        let sent = facts.record.as_ref();
        let settled = sent.and_then(|record| record.settled.as_ref());
        let outcome = settled.map(|(_, outcome)| outcome);
        let amendment = sent.and_then(|record| record.amendment.as_ref());
        let last_event = amendment.and_then(|amendment| amendment.last.as_ref());
        let Texts { reason, error, request_id, answer } = texts(outcome, facts.exclusion.as_ref()).of_state(state);
        // It may have been left out after an attempt.
        let left_out = facts.exclusion.as_ref().filter(|_| state == State::Skipped);
        let reason = match (state, outcome, left_out) {
            (State::InDoubt, None, _) => ENDED_EARLY,
            (State::Skipped, _, Some(exclusion)) => &exclusion.reason,
            // The list did not exclude the recipient: the run ended before the row was sent.
            (State::Skipped, _, None) => self.activity.skip_reason(),
            _ => reason,
        };
        let lacks_fallback = sent.is_some_and(RowRecord::lacks_fallback);
        let reason = if lacks_fallback { FALLBACK_NOT_REPORTED } else { reason };
        let decided = amendment.filter(|_| left_out.is_none() && !lacks_fallback);
        let (parts, gateway_status) = match (outcome, last_event) {
            (_, Some((_, Change::Found { status, .. }))) => (None, status.as_str()),
            (Some(Outcome::Accepted { parts, .. }), _) => (*parts, ""),
            _ => (None, ""),
        };
        let told = sent.and_then(|record| record.told.as_ref());
        let receipt = told.map(|told| &told.last.receipt);
        let delivery = sent.and_then(RowRecord::delivery);
        let channel = |channel: Option<Channel>| channel.map_or("", Channel::name);
        let before = last_event.map(|(at, _)| at).or(settled.map(|(at, _)| at)).map_or("", |at| at);
        let updated_at = match told {
            Some(told) => Cow::Owned(instant(told.last.at)),
            None => Cow::Borrowed(before),
        };
        let phone = facts.phone(own, &self.phones, self.region);
        let planned = || self.parts.variant(phone).map_or(self.kind, |(_, kind)| *kind);
        let own_run = self.run.as_ref().map_or("", |(_, name)| name);
        // A row without a message of its own refers to that of an earlier run.
        let earlier = facts.earlier.as_ref().filter(|_| sent.is_none());
        let (message_run, message_state) = match (sent, earlier) {
            (Some(_), _) => (own_run, state.name()),
            (None, Some(earlier)) => (&*earlier.run, earlier.state.map_or("", State::name)),
            (None, None) => ("", ""),
        };
        Cells {
            row,
            id: sent
                .and_then(|record| self.id(row, record.order()))
                .or_else(|| earlier.and_then(|earlier| Some(earlier.id?.get()))),
            phone,
            state,
            kind: sent.map_or_else(planned, |record| record.kind),
            msg_id: sent.and_then(RowRecord::msg_id).or_else(|| earlier.and_then(|earlier| earlier.msg_id.as_ref())),
            request_id: earlier.and_then(|earlier| earlier.request_id.as_deref()).unwrap_or(request_id),
            parts,
            gateway_status: receipt.map_or(gateway_status, |receipt| receipt.status.name()),
            reason: decided.map_or(Cow::Borrowed(reason), |amendment| amended(amendment, reason, state).into()),
            error: reported_error(receipt, state).unwrap_or(error),
            submitted_at: sent.map_or("", |record| &record.submitted_at),
            updated_at,
            delivered_by: channel(delivery.and_then(|delivery| delivery.channel)),
            delivered_at: delivery.map(|delivery| instant(delivery.at)).unwrap_or_default().into(),
            answer,
            run: own_run,
            delivered_at_is: delivery.map_or("", |delivery| delivery.certainty.name()),
            read_by: channel(delivery.and_then(|delivery| delivery.read_by)),
            message_run,
            message_state,
        }
    }
}

/// The gateway's reason in a receipt; nothing for the failure of a channel that is not the failure of the message.
pub(super) fn reported_error(receipt: Option<&Receipt>, state: State) -> Option<&str> {
    let receipt = receipt.filter(|receipt| state == State::Failed || !receipt.status.is_failure())?;
    receipt.error.as_deref()
}

/// An instant as RFC 3339 in UTC, whole milliseconds.
fn instant(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// The words of an outcome.
#[derive(Default)]
struct Texts<'a> {
    reason: &'a str,
    error: &'a str,
    request_id: &'a str,
    answer: &'a str,
}

impl Texts<'_> {
    /// Without reasons that later proof of the state replaced: why the row was in doubt or not sent, and an earlier error.
    fn of_state(self, state: State) -> Self {
        let reason = if state.is_proven() { "" } else { self.reason };
        let error = if state.has_left() { "" } else { self.error };
        Self { reason, error, ..self }
    }
}

fn texts<'a>(outcome: Option<&'a Outcome>, exclusion: Option<&'a Exclusion>) -> Texts<'a> {
    let none = Texts::default();
    match outcome {
        None => Texts { reason: exclusion.map_or("", |exclusion| &exclusion.reason), ..none },
        Some(Outcome::Accepted { answer, .. }) => Texts { answer: answer.as_deref().unwrap_or(""), ..none },
        Some(Outcome::Queued { request_id }) => Texts { request_id, ..none },
        Some(Outcome::Rejected { error }) => Texts { error, ..none },
        Some(Outcome::NotSent { reason } | Outcome::InDoubt { reason }) => Texts { reason, ..none },
    }
}

/// The reason for a row's state after receipts, answers and decisions; `before` is why it was in doubt or rejected. Proof of
/// the state replaces all decisions and all questions without a result.
fn amended(amendment: &Amendment, before: &str, state: State) -> String {
    let asked = |times: &u32| if *times == 1 { "once".to_owned() } else { format!("{times} times") };
    let because = |why: &Option<String>| why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    let last = amendment.last.as_ref().map(|(_, change)| change);
    let text = match last.filter(|change| !state.is_proven() || matches!(change, Change::Found { .. })) {
        None => before.to_owned(),
        Some(Change::Found { .. }) => "confirmed by the gateway".to_owned(),
        Some(Change::NotFound { asked: times }) => {
            format!("{before}; not found: the gateway was asked {} and has no record of the message", asked(times))
        }
        Some(Change::Unresolved { asked: times }) => {
            format!("{before}; the gateway was asked {} but gave no conclusive response", asked(times))
        }
        Some(Change::AssumedSent { by, why }) => format!("marked as sent by {by}{}", because(why)),
        Some(Change::NotSent { by, why }) => format!("marked as not sent by {by}{}", because(why)),
        Some(Change::SendAgain { by, why }) => format!("another attempt was requested by {by}{}", because(why)),
        Some(Change::Retry { by, .. }) => format!("a retry as a new message was requested by {by}"),
    };
    const DUPLICATE: &str = "duplicate suspected: an earlier attempt was sent after all";
    match (amendment.duplicate, text.as_str()) {
        (false, _) => text,
        (true, "") => DUPLICATE.to_owned(),
        (true, text) => format!("{DUPLICATE}; {text}"),
    }
}
