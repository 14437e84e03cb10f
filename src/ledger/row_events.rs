//! The events of a run by row, and what they make of a row's last attempt. Pure.

use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use super::message_state::MessageState;
use super::{Attempt, Change, KeptReceipt, LeftOut, RowEvent, State};
use crate::domain::{Arrival, Chain, Row, Status};

/// The events of a run by row. Only rows about which something was learnt or decided are in it.
#[derive(Clone, Debug, Default)]
pub struct RowEvents {
    rows: FxHashMap<Row, Vec<RowEvent>>,
    /// The rows that are left out: what is planned of them is not sent any more.
    left_out: RoaringBitmap,
}

/// What is known of an attempt by the events and the receipts about it.
#[derive(Clone, Copy, Debug)]
pub struct Judgement<'e> {
    /// The state that it comes to.
    pub state: State,
    /// The last event that fits.
    pub event: Option<&'e RowEvent>,
    /// The last receipt that gave the message its end.
    pub moved: Option<&'e KeptReceipt>,
    /// The receipt that came last.
    pub last: Option<&'e KeptReceipt>,
    /// Whether the gateway refused the message before any channel was tried.
    pub refused_at_intake: bool,
    /// The order whose identifier the message has; nothing for the run's own.
    pub order: Option<u32>,
    /// The state that a retry replaced by a new message which was not sent yet.
    pub(super) before_retry: Option<State>,
    /// The last event before that retry.
    pub(super) event_before_retry: Option<&'e RowEvent>,
}

impl<'e> Judgement<'e> {
    /// A message in this state, of which nothing else is known.
    fn of(state: State) -> Self {
        Self {
            state,
            event: None,
            moved: None,
            last: None,
            refused_at_intake: false,
            order: None,
            before_retry: None,
            event_before_retry: None,
        }
    }

    /// Whether the last report about the message is the failure of an earlier channel.
    pub(super) fn awaits_fallback(&self) -> bool {
        let failed = match (self.last, self.event.map(|event| &event.change)) {
            (Some(last), _) => last.receipt.status.is_failure(),
            (None, Some(Change::Found { status, .. })) => Status::from_name(status).is_failure(),
            _ => false,
        };
        failed && matches!(self.state, State::Accepted | State::Queued)
    }

    /// A message that these receipts prove to have arrived; nothing if none of them does.
    fn delivered(receipts: impl Iterator<Item = &'e KeptReceipt>) -> Option<Self> {
        let mut delivered: Option<Self> = None;
        for receipt in receipts {
            let state = match receipt.receipt.status.arrival() {
                Arrival::Read => State::Read,
                Arrival::Delivered => State::Delivered,
                Arrival::Pending | Arrival::Failed => continue,
            };
            let judged = delivered.get_or_insert(Self { order: receipt.order, ..Self::of(state) });
            if state == State::Read || judged.moved.is_none() {
                (judged.state, judged.moved, judged.order) = (state, Some(receipt), receipt.order);
            }
        }
        delivered
    }
}

impl From<Vec<RowEvent>> for RowEvents {
    /// Events come in the order in which they were recorded.
    fn from(events: Vec<RowEvent>) -> Self {
        let mut rows = FxHashMap::<Row, Vec<RowEvent>>::default();
        for event in events {
            rows.entry(event.row).or_default().push(event);
        }
        Self { rows, left_out: RoaringBitmap::new() }
    }
}

impl RowEvents {
    /// The events of a run whose rows may have been left out after they had an attempt.
    #[must_use]
    pub fn leaving_out(self, left_out: &LeftOut) -> Self {
        Self { left_out: left_out.rows(), ..self }
    }

    /// The rows that have events.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.rows.keys().copied()
    }

    /// Whether a row has events.
    #[must_use]
    pub fn concern(&self, row: Row) -> bool {
        self.rows.contains_key(&row)
    }

    /// The events of a row, in their order.
    #[must_use]
    pub fn of(&self, row: Row) -> &[RowEvent] {
        self.rows.get(&row).map_or(&[], Vec::as_slice)
    }

    /// What is known of a row by its attempts, in their order, and by its events and receipts.
    ///
    /// The last attempt counts. If its message was not delivered, a delivery of an earlier message of the row counts, because
    /// the recipient has it. A row that is skipped before its retry is sent keeps its earlier state.
    pub(super) fn judge<'e>(&'e self, row: Row, attempts: &[Attempt], receipts: &'e [KeptReceipt]) -> Judgement<'e> {
        let Some((last, earlier)) = attempts.split_last() else { return Judgement::of(State::Planned) };
        let judged = self.judge_message(row, *last, receipts);
        if !matches!(judged.state, State::Planned | State::NotSent | State::Rejected | State::Failed) {
            return judged;
        }
        let before = receipts.iter().filter(|receipt| receipt.order < judged.order);
        if let Some(delivered) = Judgement::delivered(before) {
            return delivered;
        }
        if judged.state != State::Planned || !self.left_out.contains(row.get()) {
            return judged;
        }
        if let Some(state @ (State::Rejected | State::Failed)) = judged.before_retry {
            return Judgement { state, event: judged.event_before_retry, ..judged };
        }
        let is_earlier = |attempt: &Attempt| self.order_of(row, attempt.envelope) < judged.order;
        match earlier.iter().rposition(is_earlier) {
            Some(place) => self.judge(row, &earlier[..=place], receipts),
            None => Judgement { state: State::Skipped, ..judged },
        }
    }

    /// What the events and the receipts of a row make of the message of an attempt.
    ///
    /// One that does not fit what was known before it changes nothing. If the row is left out nothing of it is
    /// planned any more: an order to send what is in doubt again is void, and the doubt stays.
    fn judge_message<'e>(&'e self, row: Row, attempt: Attempt, receipts: &'e [KeptReceipt]) -> Judgement<'e> {
        let is_out = self.left_out.contains(row.get());
        let is_void = |event: &&RowEvent| is_out && matches!(event.change, Change::SendAgain { .. });
        let order = self.order_of(row, attempt.envelope);
        let about = self.of(row).iter().filter(|event| event.envelope == attempt.envelope && !is_void(event));
        let mut events = about.peekable();
        let mut receipts = receipts.iter().filter(|receipt| receipt.order == order).peekable();
        let state = match attempt.state {
            // Proven not sent, after one of the same message that nothing is proven of.
            State::Planned if is_out && self.repeats_doubt(row) => State::InDoubt,
            state => state,
        };
        let mut message = MessageState::new(state, attempt.chain);
        let mut judgement = Judgement { order, ..Judgement::of(attempt.state) };
        loop {
            let event = events.next_if(|event| receipts.peek().is_none_or(|receipt| event.at <= receipt.at));
            if let Some(event) = event {
                if message.add_change(&event.change) {
                    judgement.event_before_retry = judgement.event;
                    judgement.event = Some(event);
                }
                continue;
            }
            let Some(receipt) = receipts.next() else { break };
            judgement.last = Some(receipt);
            if message.add_receipt(receipt) && message.state != State::Accepted {
                judgement.moved = Some(receipt);
            }
        }
        (judgement.state, judgement.before_retry) = (message.state, message.before_retry);
        judgement.refused_at_intake = message.refused_at_intake;
        judgement
    }

    /// The order under whose identifiers the attempt of an envelope went out; nothing for the run's own.
    fn order_of(&self, row: Row, envelope: u32) -> Option<u32> {
        if self.concern(row) { self.order(row, envelope) } else { None }
    }

    /// The order under whose identifiers an attempt went out; nothing for the run's own.
    #[must_use]
    pub fn order(&self, row: Row, envelope: u32) -> Option<u32> {
        let before = self.of(row).iter().filter(|event| event.envelope < envelope);
        before.rev().find_map(|event| match event.change {
            Change::Retry { order, .. } => Some(order),
            _ => None,
        })
    }

    /// The order under whose identifiers the next attempt of a row goes out; nothing for the run's own.
    #[must_use]
    pub fn next_order(&self, row: Row) -> Option<u32> {
        self.order(row, u32::MAX)
    }

    /// Whether the next attempt of a row repeats a message that was in doubt, and so may have gone out.
    #[must_use]
    pub fn repeats_doubt(&self, row: Row) -> bool {
        let order = self.next_order(row);
        let ordered = |event: &&RowEvent| matches!(event.change, Change::SendAgain { .. });
        self.of(row).iter().filter(ordered).any(|event| self.order(row, event.envelope) == order)
    }

    /// Whether a row has a message, or may have one. `attempts` are all of the row's, in their order.
    ///
    /// An order to send again does not undo the doubt about what was sent before it; that it was not sent does.
    #[must_use]
    pub fn has_message(&self, row: Row, attempts: &[Attempt], receipts: &[KeptReceipt]) -> bool {
        let judged = attempts.iter().map(|attempt| self.judge_message(row, *attempt, receipts));
        let given_up = judged.clone().next_back().is_some_and(|judged| judged.state == State::NotSent);
        judged.into_iter().any(|Judgement { state, event, .. }| match state {
            State::InDoubt | State::Unresolved => !given_up,
            State::Planned => !given_up && event.is_some_and(|event| matches!(event.change, Change::SendAgain { .. })),
            known => known.has_operation(),
        })
    }

    /// Proof that an attempt before `envelope` went out after all, although it was sent again under the same identifier and on
    /// the same channels.
    #[must_use]
    pub fn duplicate(&self, row: Row, envelope: u32, chain: Chain) -> Option<&RowEvent> {
        let order = self.order(row, envelope);
        self.of(row).iter().find(|event| {
            let earlier = event.envelope < envelope && self.order(row, event.envelope) == order;
            earlier && matches!(event.change, Change::Found { .. }) && event.change.state(chain) != Some(State::Failed)
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::{OperationKind, Receipt, ReceiptSource};
    use crate::ledger::Author;

    fn row() -> Row {
        Row::new(7)
    }

    fn events(changes: Vec<(u32, Change)>) -> RowEvents {
        let event = |(envelope, change)| RowEvent { row: row(), envelope, at: Timestamp::UNIX_EPOCH, change };
        changes.into_iter().map(event).collect::<Vec<_>>().into()
    }

    fn attempt(envelope: u32, state: State) -> Attempt {
        Attempt { envelope, state, chain: OperationKind::Sms.into() }
    }

    fn found(status: &str) -> Change {
        Change::Found { status: status.into(), msg_id: None, channel: None }
    }

    fn by() -> Author {
        Author::Person("olena".into())
    }

    #[test]
    fn doubt_gives_way_to_decisions_and_everything_to_proof() {
        let sent = || Change::AssumedSent { by: by(), why: None };
        let unresolved = || Change::Unresolved { asked: 20 };
        for (changes, state) in [
            (vec![], State::InDoubt),
            (vec![Change::NotFound { asked: 3 }], State::InDoubt),
            (vec![unresolved()], State::Unresolved),
            (vec![unresolved(), sent()], State::AssumedSent),
            (vec![sent(), found("DELIVERED")], State::Accepted),
            (vec![found("REJECTED")], State::Failed),
            (vec![found("DELIVERED"), sent()], State::Accepted),
            (vec![found("DELIVERED"), Change::SendAgain { by: by(), why: None }], State::Accepted),
            (vec![Change::SendAgain { by: by(), why: None }], State::Planned),
            (vec![Change::NotSent { by: by(), why: None }], State::NotSent),
        ] {
            let events = events(changes.iter().cloned().map(|change| (3, change)).collect());
            assert_eq!(events.judge(row(), &[attempt(3, State::InDoubt)], &[]).state, state, "{changes:?}");
        }
    }

    #[test]
    fn only_events_about_the_last_attempt_change_its_state() {
        let events = events(vec![(3, Change::SendAgain { by: by(), why: None }), (3, found("DELIVERED"))]);
        let judged = events.judge(row(), &[attempt(5, State::Rejected)], &[]);
        assert_eq!((judged.state, judged.event), (State::Rejected, None));
        assert!(events.duplicate(row(), 5, Chain::UNKNOWN).is_some(), "the first attempt went out after all");
        assert!(events.duplicate(row(), 3, Chain::UNKNOWN).is_none());
    }

    #[test]
    fn an_order_to_send_again_does_not_undo_the_doubt_before_it() {
        let again = || Change::SendAgain { by: by(), why: None };
        let not_sent = || Change::NotSent { by: by(), why: None };
        let doubt = |envelope| attempt(envelope, State::InDoubt);
        for (changes, attempts, expected) in [
            (vec![], vec![doubt(3)], true),
            (vec![(3, again())], vec![doubt(3)], true),
            (vec![(3, again())], vec![doubt(3), attempt(5, State::Rejected)], true),
            (vec![(3, not_sent())], vec![doubt(3)], false),
            (vec![(3, again()), (5, not_sent())], vec![doubt(3), doubt(5)], false),
            (vec![(3, again()), (5, not_sent()), (3, found("READ"))], vec![doubt(3), doubt(5)], true),
            (vec![], vec![attempt(3, State::Rejected)], false),
            (vec![], vec![attempt(3, State::Planned), attempt(4, State::Accepted)], true),
        ] {
            let events = events(changes.clone());
            assert_eq!(events.has_message(row(), &attempts, &[]), expected, "{changes:?} {attempts:?}");
        }
        assert!(events(vec![(3, again())]).repeats_doubt(row()));
        assert!(!events(vec![(3, not_sent())]).repeats_doubt(row()));
        let anew = events(vec![(3, again()), (5, Change::Retry { by: by(), order: 1 })]);
        assert!(!anew.repeats_doubt(row()), "a new message has no doubt of its own");
    }

    #[test]
    fn a_retry_is_a_new_message_under_identifiers_of_its_own() {
        let retry = |order| Change::Retry { by: by(), order };
        let events = events(vec![(3, retry(1)), (5, retry(2)), (3, found("DELIVERED"))]);
        assert_eq!(events.judge(row(), &[attempt(5, State::Rejected)], &[]).state, State::Planned);
        assert_eq!(
            events.judge(row(), &[attempt(3, State::NotSent)], &[]).state,
            State::Accepted,
            "proof that comes before it went out again"
        );
        let orders = [3, 4, 5, 6].map(|envelope| events.order(row(), envelope));
        assert_eq!(orders, [None, Some(1), Some(1), Some(2)]);
        assert_eq!(events.next_order(row()), Some(2));
        assert!(events.duplicate(row(), 6, Chain::UNKNOWN).is_none(), "the old message is another one");
    }

    #[test]
    fn retry_that_is_left_out_keeps_the_state_of_the_sent_message() {
        let retry = Change::Retry { by: by(), order: 1 };
        let out = LeftOut::skipped(&[row()], "opted out");
        let kept = |status| KeptReceipt {
            order: None,
            at: Timestamp::UNIX_EPOCH,
            receipt: Receipt::new(ReceiptSource::Webhook, status),
        };
        let (first, new) = (attempt(3, State::Accepted), attempt(5, State::Planned));
        let failed = [kept(Status::Expired)];
        let mut event = RowEvent { row: row(), envelope: 3, at: Timestamp::from_second(9).unwrap(), change: retry };
        let judge = |event: &RowEvent, attempts: &[Attempt], receipts: &[KeptReceipt]| {
            let events = RowEvents::from(vec![event.clone()]).leaving_out(&out);
            events.judge(row(), attempts, receipts).state
        };
        assert_eq!(judge(&event, &[first], &failed), State::Failed, "it was ordered only");
        assert_eq!(judge(&event, &[first, new], &failed), State::Failed, "the new message was proven not sent");
        let rejected = attempt(3, State::Rejected);
        assert_eq!(judge(&event, &[rejected, new], &[]), State::Rejected);
        assert_eq!(judge(&event, &[attempt(3, State::NotSent)], &[]), State::Skipped, "nothing was ever sent");
        event.change = found("ACCEPTED");
        assert_eq!(judge(&event, &[attempt(3, State::Planned)], &[]), State::Accepted);
    }

    #[test]
    fn delivery_of_an_earlier_message_counts_if_the_last_one_reached_nobody() {
        let events = events(vec![(3, Change::Retry { by: by(), order: 1 })]);
        let kept = |order, status| KeptReceipt {
            order,
            at: Timestamp::from_second(9).unwrap(),
            receipt: Receipt::new(ReceiptSource::Webhook, status),
        };
        let late = kept(None, Status::Delivered);
        for (last, receipts, state) in [
            (State::Planned, vec![late.clone()], State::Delivered),
            (State::Rejected, vec![late.clone()], State::Delivered),
            (State::Accepted, vec![late.clone(), kept(Some(1), Status::Expired)], State::Delivered),
            (State::Accepted, vec![kept(Some(1), Status::Read), late.clone()], State::Read),
            (State::Accepted, vec![late.clone()], State::Accepted),
            (State::InDoubt, vec![late.clone()], State::InDoubt),
        ] {
            let judged = events.judge(row(), &[attempt(3, State::Accepted), attempt(5, last)], &receipts);
            assert_eq!(judged.state, state, "{last} {receipts:?}");
        }
    }
}
