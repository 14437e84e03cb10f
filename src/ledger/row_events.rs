//! The events of a run by row, and what they make of a row's last attempt. Pure.

use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use super::receipts::Standing;
use super::{Attempt, Change, KeptReceipt, LeftOut, RowEvent, State};
use crate::domain::{Arrival, Row};

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
    /// The last receipt that moved the message.
    pub moved: Option<&'e KeptReceipt>,
    /// The receipt by which it arrived: the earliest by the gateway's clock of those that say so.
    pub arrived: Option<&'e KeptReceipt>,
    /// The receipt that came last.
    pub last: Option<&'e KeptReceipt>,
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

    /// What the events and the receipts of a row make of an attempt.
    ///
    /// One that does not fit what was known before it changes nothing. Where the row is left out nothing of it is
    /// planned any more: an order to send what is in doubt again is void, and the doubt stays.
    pub(super) fn judge<'e>(&'e self, row: Row, attempt: Attempt, receipts: &'e [KeptReceipt]) -> Judgement<'e> {
        let is_out = self.left_out.contains(row.get());
        let is_void = |event: &&RowEvent| is_out && matches!(event.change, Change::SendAgain { .. });
        let order = if self.concern(row) { self.order(row, attempt.envelope) } else { None };
        let about = self.of(row).iter().filter(|event| event.envelope == attempt.envelope && !is_void(event));
        let mut events = about.peekable();
        let mut receipts = receipts.iter().filter(|receipt| receipt.order == order).peekable();
        let mut standing = Standing::of(match attempt.state {
            // Proven not sent, after one of the same message that nothing is proven of.
            State::Planned if is_out && self.repeats_doubt(row) => State::InDoubt,
            state => state,
        });
        let mut judgement = Judgement { state: attempt.state, event: None, moved: None, arrived: None, last: None };
        loop {
            let event = events.next_if(|event| receipts.peek().is_none_or(|receipt| event.at <= receipt.at));
            if let Some(event) = event {
                if event.change.fits(standing.state) {
                    let state = event.change.state().unwrap_or(standing.state);
                    let failed_at = (state == State::Failed).then_some(event.at);
                    standing = Standing { state, failed_at, replaced: matches!(event.change, Change::Retry { .. }) };
                    judgement.event = Some(event);
                }
                continue;
            }
            let Some(receipt) = receipts.next() else { break };
            judgement.last = Some(receipt);
            if standing.hear(receipt) {
                judgement.moved = Some(receipt);
            }
            // Receipts may be reordered: that it was read can come before that it arrived.
            let tells = matches!(receipt.receipt.status.arrival(), Arrival::Delivered | Arrival::Read)
                && matches!(standing.state, State::Delivered | State::Read);
            if tells && judgement.arrived.is_none_or(|known| receipt.told_at() < known.told_at()) {
                judgement.arrived = Some(receipt);
            }
        }
        judgement.state = if is_out && standing.state == State::Planned { State::Skipped } else { standing.state };
        judgement
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
        let judged = attempts.iter().map(|attempt| self.judge(row, *attempt, receipts));
        let given_up = judged.clone().next_back().is_some_and(|judged| judged.state == State::NotSent);
        judged.into_iter().any(|Judgement { state, event, .. }| match state {
            State::InDoubt | State::Unresolved => !given_up,
            State::Planned => !given_up && event.is_some_and(|event| matches!(event.change, Change::SendAgain { .. })),
            known => known.has_operation(),
        })
    }

    /// Proof that an attempt before `envelope` went out after all, although it was sent again under the same identifier.
    #[must_use]
    pub fn duplicate(&self, row: Row, envelope: u32) -> Option<&RowEvent> {
        let order = self.order(row, envelope);
        self.of(row).iter().find(|event| {
            let earlier = event.envelope < envelope && self.order(row, event.envelope) == order;
            earlier && matches!(event.change, Change::Found { .. }) && event.change.state() != Some(State::Failed)
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::ledger::Author;

    fn row() -> Row {
        Row::new(7)
    }

    fn events(changes: Vec<(u32, Change)>) -> RowEvents {
        let event = |(envelope, change)| RowEvent { row: row(), envelope, at: Timestamp::UNIX_EPOCH, change };
        changes.into_iter().map(event).collect::<Vec<_>>().into()
    }

    fn attempt(envelope: u32, state: State) -> Attempt {
        Attempt { envelope, state }
    }

    fn found(status: &str) -> Change {
        Change::Found { status: status.into(), msg_id: None }
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
            assert_eq!(events.judge(row(), attempt(3, State::InDoubt), &[]).state, state, "{changes:?}");
        }
    }

    #[test]
    fn only_events_about_the_last_attempt_change_its_state() {
        let events = events(vec![(3, Change::SendAgain { by: by(), why: None }), (3, found("DELIVERED"))]);
        let judged = events.judge(row(), attempt(5, State::Rejected), &[]);
        assert_eq!((judged.state, judged.event), (State::Rejected, None));
        assert!(events.duplicate(row(), 5).is_some(), "the first attempt went out after all");
        assert!(events.duplicate(row(), 3).is_none());
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
        assert_eq!(events.judge(row(), attempt(5, State::Rejected), &[]).state, State::Planned);
        assert_eq!(
            events.judge(row(), attempt(3, State::NotSent), &[]).state,
            State::Accepted,
            "proof that comes before it went out again"
        );
        let orders = [3, 4, 5, 6].map(|envelope| events.order(row(), envelope));
        assert_eq!(orders, [None, Some(1), Some(1), Some(2)]);
        assert_eq!(events.next_order(row()), Some(2));
        assert!(events.duplicate(row(), 6).is_none(), "the old message is another one");
    }
}
