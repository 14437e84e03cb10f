//! Bounds of a campaign: budget, frequency caps, daily limits and allowed countries, and the rules that enforce them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::civil::Date;
use jiff::{Timestamp, Zoned};
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use super::{
    Attempt, EnvelopeRecord, Ledger, LedgerError, NumberFilter, RowChange, RowEvents, Run, RunActivity, SentRow,
    SharedRun, StoredReceipt,
};
use campaign_core::calendar::DailyLimits;
use campaign_core::domain::{
    Addressee, Amount, Budget, Chain, CountrySet, FrequencyCap, OperationOutcome, Phone, Row, Spending, Status,
    find_country,
};

/// The skip reason for capped numbers.
pub const CAPPED: &str = "cap";

/// The skip reason for numbers outside the allowed countries, or of an unknown country.
pub const COUNTRY: &str = "country";

/// The bounds for every intent of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// The budget that all runs of the edition share.
    pub budget: Budget,
    /// The frequency caps of a number.
    pub caps: Vec<FrequencyCap>,
    /// The rows that repeat a message in doubt. Their own earlier attempts do not count towards caps, because the
    /// decision to repeat them allows for a duplicate.
    pub repeated: RoaringBitmap,
    /// The maximum number of messages of the edition per day.
    pub per_day: Option<DailyLimits>,
    /// The countries that messages may reach. `None` for all.
    pub countries: Option<CountrySet>,
}

/// A bound that the next message exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The maximum number of recipients is reached.
    Recipients {
        /// The maximum.
        limit: u64,
    },
    /// The next message costs more than the rest of the budget.
    Cost {
        /// The maximum cost.
        limit: Amount,
        /// The cost of the messages so far.
        used: Amount,
    },
    /// The maximum number of messages for today is reached.
    Day {
        /// The maximum.
        limit: u64,
        /// The time at which the next day begins.
        until: Zoned,
        /// The wait until then.
        wait: Duration,
    },
}

/// A query for numbers that caps suppress.
#[derive(Clone, Copy, Debug)]
pub struct CapQuery<'a> {
    /// The caps, each of which suppresses the numbers that reach it.
    pub caps: &'a [FrequencyCap],
    /// `true` counts only messages through gateways on loopback, `false` only messages through other gateways.
    pub loopback: bool,
    /// The only number of interest. `None` for all numbers.
    pub only: Option<Phone>,
}

/// Whether caps suppress this number now. Messages through gateways on loopback are counted separately from messages
/// through other gateways.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn is_number_capped(
    ledger: &(impl Ledger + ?Sized),
    phone: Phone,
    caps: &[FrequencyCap],
    loopback: bool,
) -> Result<bool, LedgerError> {
    if caps.is_empty() {
        return Ok(false);
    }
    let capped = ledger.load_numbers(NumberFilter::Capped(CapQuery { caps, loopback, only: Some(phone) })).await?;
    Ok(capped.contains(phone))
}

/// Identifies the runs that share a budget: all live runs of an edition, with any profile. Loopback runs share a
/// separate budget.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BudgetScope<'r> {
    /// The name of the campaign.
    pub campaign: &'r str,
    /// The rendered edition. Empty if the campaign has none.
    pub edition: &'r str,
    /// Whether the messages go through gateways on this machine.
    pub loopback: bool,
}

impl<'r> BudgetScope<'r> {
    /// The budget scope of a run. `None` for rehearsals and single messages, which share no budget.
    pub(crate) fn for_run(run: &'r Run) -> Option<Self> {
        let Run { campaign, edition, suppression: policy, .. } = run;
        (run.live && !run.shared).then_some(Self { campaign, edition, loopback: policy.loopback })
    }

    /// Whether the messages of a run count towards this budget.
    pub fn includes(self, run: &Run) -> bool {
        BudgetScope::for_run(run) == Some(self)
    }
}

/// Whether two runs share a budget.
pub fn share_budget(first: &Run, second: &Run) -> bool {
    first.key == second.key || BudgetScope::for_run(first).is_some_and(|scope| scope.includes(second))
}

/// The number of `rows` messages that fit within the remaining budget, and the bound that the next message exceeds.
/// `None` if all messages fit.
pub(crate) fn find_exceeded_budget(
    budget: &Budget,
    used: Spending,
    rows: usize,
    costs: &[Amount],
) -> Option<(usize, Bound)> {
    let mut used = used;
    for row in 0..rows {
        let next = used.add_spending(row_spending(costs, row));
        if let Some(limit) = budget.recipients.filter(|limit| next.recipients > *limit) {
            return Some((row, Bound::Recipients { limit }));
        }
        if let Some(limit) = budget.cost.filter(|limit| next.cost > *limit) {
            return Some((row, Bound::Cost { limit, used: used.cost }));
        }
        used = next;
    }
    None
}

/// The spending of an intent with `rows` messages and these costs.
pub(crate) fn intended_spending(rows: usize, costs: &[Amount]) -> Spending {
    (0..rows).map(|row| row_spending(costs, row)).fold(Spending::default(), Spending::add_spending)
}

/// The spending that an answer refunds: rejected and unsent messages cost nothing.
pub(crate) fn refunded_spending(outcomes: &[OperationOutcome], costs: &[Amount]) -> Spending {
    let refunded = outcomes.iter().enumerate().filter(|(_, outcome)| !may_have_been_sent(outcome));
    refunded.map(|(row, _)| row_spending(costs, row)).fold(Spending::default(), Spending::add_spending)
}

impl EnvelopeRecord {
    /// The spending of the envelope without the messages that only receipts prove. A message whose outcome is unknown
    /// counts as sent. `events` are the events of the run.
    pub fn spending(&self, events: &RowEvents) -> Spending {
        let counted = self
            .iter_rows()
            .enumerate()
            .filter(|(_, (sent, outcome))| events.counts_as_sent(sent.row, self.envelope, self.chain(sent), *outcome));
        counted.map(|(index, _)| row_spending(&self.costs, index)).fold(Spending::default(), Spending::add_spending)
    }
}

impl RowEvents {
    /// Whether an attempt counts as sent, because its message was or might have been sent, according to its outcome and
    /// the events of its row. Without an outcome, the message might have been sent.
    pub fn counts_as_sent(&self, row: Row, envelope: u32, chain: Chain, outcome: Option<&OperationOutcome>) -> bool {
        let relevant = self.for_row(row).iter().filter(|event| event.envelope == envelope);
        let counts = outcome.is_none_or(may_have_been_sent);
        relevant.fold(counts, |counts, event| counts_after_change(counts, &event.change, chain))
    }

    /// The indexes of the attempts of a row that count as sent only because of receipts. Each attempt is given with a
    /// flag that says whether it already counts.
    ///
    /// Attempts with the same identifier send the same message, so a receipt does not say which of them succeeded. The
    /// receipt counts for the last of them, unless one of them already counts.
    pub fn find_proven_attempts(
        &self,
        row: Row,
        attempts: &[(Attempt, bool)],
        receipts: &[StoredReceipt],
    ) -> Vec<usize> {
        let mut proven = Vec::new();
        for (index, (attempt, _)) in attempts.iter().enumerate() {
            let order = self.find_known_order(row, attempt.envelope);
            let is_same = |other: &Attempt| self.find_known_order(row, other.envelope) == order;
            let is_counted = attempts.iter().any(|(other, counts)| *counts && is_same(other));
            let is_repeated = attempts[index + 1..].iter().any(|(later, _)| is_same(later));
            if !is_counted && !is_repeated && self.is_proven_sent(row, *attempt, receipts) {
                proven.push(index);
            }
        }
        proven
    }
}

/// A message that counts towards limits and caps, because it was sent or might have been sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedMessage {
    pub(crate) envelope: u32,
    pub(crate) begun_at: Timestamp,
    pub(crate) row: Row,
    pub(crate) to: Addressee,
    pub(crate) cost: Amount,
}

/// Finds the counted messages of a run in its envelopes, in order, and then in its receipts.
pub(crate) struct CountedMessages {
    events: RowEvents,
    /// The attempts of rows with events or with an attempt that does not count, and whether each attempt counts.
    attempts: FxHashMap<Row, Vec<(CountedMessage, Attempt, bool)>>,
}

impl CountedMessages {
    /// Starts without envelopes, for a run with these events.
    pub(crate) fn new(events: RowEvents) -> Self {
        Self { events, attempts: FxHashMap::default() }
    }

    /// Adds an envelope, and returns its messages that count by outcomes and events.
    pub(crate) fn add_envelope(&mut self, envelope: &EnvelopeRecord) -> Vec<CountedMessage> {
        let mut counted = Vec::with_capacity(envelope.rows.len());
        for (index, (sent, outcome)) in envelope.iter_rows().enumerate() {
            let (row, chain, number) = (sent.row, envelope.chain(sent), envelope.envelope);
            let cost = row_spending(&envelope.costs, index).cost;
            let message = CountedMessage { envelope: number, begun_at: envelope.begun_at, row, to: sent.to, cost };
            let counts = self.events.counts_as_sent(row, number, chain, outcome);
            if !counts || self.events.has_events(row) || self.attempts.contains_key(&row) {
                let attempt = RunActivity::Idle.build_attempt(number, chain, outcome);
                self.attempts.entry(row).or_default().push((message, attempt, counts));
            }
            counted.extend(counts.then_some(message));
        }
        counted
    }

    /// The rows with an attempt that does not count yet. Receipts of other rows change nothing.
    pub(crate) fn uncounted_rows(&self) -> RoaringBitmap {
        let has_uncounted = |attempts: &[(CountedMessage, Attempt, bool)]| attempts.iter().any(|(.., counts)| !counts);
        self.attempts.iter().filter(|(_, attempts)| has_uncounted(attempts)).map(|(row, _)| row.get()).collect()
    }

    /// Returns the messages that count only because of the receipts of a row. All envelopes with the row must have been
    /// added before.
    pub(crate) fn find_proven_messages(&self, row: Row, receipts: &[StoredReceipt]) -> Vec<CountedMessage> {
        let Some(known) = self.attempts.get(&row) else { return Vec::new() };
        let attempts: Vec<(Attempt, bool)> = known.iter().map(|(_, attempt, counts)| (*attempt, *counts)).collect();
        let proven = self.events.find_proven_attempts(row, &attempts, receipts);
        proven.into_iter().map(|index| known[index].0).collect()
    }
}

/// Whether a message with this outcome was or might have been sent.
pub(crate) fn may_have_been_sent(outcome: &OperationOutcome) -> bool {
    !matches!(outcome, OperationOutcome::Rejected { .. } | OperationOutcome::NotSent { .. })
}

/// Whether a message counts as sent after a change. `counts` says whether the message counted before the change.
fn counts_after_change(counts: bool, change: &RowChange, chain: Chain) -> bool {
    match change {
        // A message that the gateway queued and then rejected does not count. A rejection on an earlier channel does
        // not reject the message.
        RowChange::Found { status, channel, .. } => {
            status != Status::Rejected.name() || !chain.is_exhausted_by(channel.as_ref())
        }
        RowChange::AssumedSent { .. } => true,
        RowChange::NotSent { .. } => false,
        RowChange::NotFound { .. }
        | RowChange::Unresolved { .. }
        | RowChange::SendAgain { .. }
        | RowChange::Retry { .. } => counts,
    }
}

/// The spending on one message: one recipient, and the cost at index `row`.
fn row_spending(costs: &[Amount], row: usize) -> Spending {
    Spending { recipients: 1, cost: costs.get(row).copied().unwrap_or_default() }
}

/// Whether the messages of a run count towards caps, because they are marketing messages from campaigns or assistants
/// to real recipients.
///
/// Test messages, lookups, code calls and service messages do not count.
pub(crate) fn counts_for_caps(run: &Run) -> bool {
    let is_from_assistants = run.campaign == SharedRun::ASSISTANT_MESSAGES;
    run.live && (!run.shared || is_from_assistants) && run.suppression.purpose.is_marketing() && !run.kind.is_single()
}

/// Whether caps allow another message now to a number that was sent messages at these times. Times are in microseconds
/// since 1970.
pub(crate) fn caps_allow(caps: &[FrequencyCap], now: i64, times: &[i64]) -> bool {
    caps.iter().all(|cap| cap.allows_another(now, times.iter().copied()))
}

/// An earlier message to a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PriorMessage {
    /// The time, in microseconds since 1970.
    pub(crate) at: i64,
    /// The row, if the message belongs to the run of the intent.
    pub(crate) row: Option<Row>,
}

/// The rows of an envelope that caps suppress, given the earlier messages to each number.
pub(crate) fn find_capped_rows(
    Bounds { caps, repeated, .. }: &Bounds,
    now: i64,
    rows: &[SentRow],
    mut messages: FxHashMap<Addressee, Vec<PriorMessage>>,
) -> Vec<Row> {
    let mut capped = Vec::new();
    for sent in rows {
        let messages = messages.entry(sent.to).or_default();
        let is_own = |message: &PriorMessage| message.row == Some(sent.row) && repeated.contains(sent.row.get());
        let times: Vec<i64> = messages.iter().filter(|message| !is_own(message)).map(|message| message.at).collect();
        match caps_allow(caps, now, &times) {
            // Earlier rows of the same envelope count towards the caps of later ones.
            true => messages.push(PriorMessage { at: now, row: Some(sent.row) }),
            false => capped.push(sent.row),
        }
    }
    capped
}

/// The rows of an envelope whose numbers are outside the allowed countries.
pub(crate) fn find_rows_outside_countries(bounds: Option<&Bounds>, rows: &[SentRow]) -> Vec<Row> {
    let Some(countries) = bounds.and_then(|bounds| bounds.countries.as_ref()) else { return Vec::new() };
    let is_abroad = |sent: &&SentRow| !countries.contains(sent.to.phone().and_then(find_country));
    rows.iter().filter(is_abroad).map(|sent| sent.row).collect()
}

/// How many of the `rows` messages may still be sent today, and the bound that the others exceed. `None` if all of them
/// may be sent today.
///
/// `sent_by_day` counts the messages that were sent on each day.
pub(crate) fn find_exceeded_daily_limit(
    per_day: &DailyLimits,
    sent_by_day: &BTreeMap<Date, u64>,
    now: Timestamp,
    departs_at: Timestamp,
    rows: usize,
) -> Option<(usize, Bound)> {
    let used = per_day.count_usage(sent_by_day, now);
    let (limit, remaining) = (per_day.limit(used.days), per_day.remaining_today(used));
    // A message that would be sent tomorrow does not fit into today's limit.
    let is_tomorrow = per_day.local_date(departs_at) > per_day.local_date(now);
    let sendable = if is_tomorrow { 0 } else { usize::try_from(remaining).unwrap_or(usize::MAX) };
    if rows <= sendable {
        return None;
    }
    let until = per_day.next_day_start(now);
    let wait = Duration::try_from(until.timestamp().duration_since(now)).unwrap_or_default();
    Some((sendable, Bound::Day { limit, until, wait }))
}

/// The tighter of two bounds. If both bounds are equally tight, the first bound.
pub(crate) fn tighter_bound(first: Option<(usize, Bound)>, second: Option<(usize, Bound)>) -> Option<(usize, Bound)> {
    [first, second].into_iter().flatten().min_by_key(|(fits, _)| *fits)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::{Author, RowEvent, RowState};
    use campaign_core::domain::{Endpoint, OperationKind, Receipt, ReceiptSource};

    #[test]
    fn daily_limit_grows_with_each_day_that_has_sent_messages() {
        let per_day = DailyLimits::new(vec![10, 30, 50], TimeZone::UTC).unwrap();
        let now: Timestamp = "2026-11-23T18:00:00Z".parse().unwrap();
        let fits = |sent: &[(i8, u64)]| {
            let sent = sent.iter().map(|(day, count)| (jiff::civil::date(2026, 11, *day), *count)).collect();
            find_exceeded_daily_limit(&per_day, &sent, now, now, 100).map(|(fits, bound)| {
                let Bound::Day { limit, wait, .. } = bound else { panic!("{bound:?}") };
                assert_eq!(wait, Duration::from_hours(6));
                (fits, limit)
            })
        };
        assert_eq!(fits(&[]), Some((10, 10)));
        assert_eq!(fits(&[(23, 4)]), Some((6, 10)));
        assert_eq!(fits(&[(20, 10), (22, 0), (23, 4)]), Some((26, 30)), "a day without messages does not count");
        assert_eq!(fits(&[(1, 1), (2, 1), (3, 1), (23, 60)]), Some((0, 50)));
        assert_eq!(fits(&[(24, 7)]), Some((10, 10)), "after a clock that was ahead");
        assert_eq!(find_exceeded_daily_limit(&per_day, &BTreeMap::new(), now, now, 10), None);
    }

    #[test]
    fn message_after_midnight_does_not_count_towards_today() {
        let per_day = DailyLimits::new(vec![10], TimeZone::get("Europe/Kyiv").unwrap()).unwrap();
        let now: Timestamp = "2026-11-23T21:59:50Z".parse().unwrap();
        let fits = |seconds| {
            let departs_at = now + Duration::from_secs(seconds);
            find_exceeded_daily_limit(&per_day, &BTreeMap::new(), now, departs_at, 1).map(|(fits, _)| fits)
        };
        assert_eq!([0, 9, 10, 600].map(fits), [None, None, Some(0), Some(0)]);
    }

    #[test]
    fn receipt_proves_that_an_uncounted_message_was_sent() {
        let row = Row::new(7);
        let by = Author::Person("olena".into());
        let retry = RowEvent { row, envelope: 2, at: Timestamp::UNIX_EPOCH, change: RowChange::Retry { by, order: 1 } };
        let events = RowEvents::new(vec![retry], Endpoint::Sync);
        let attempt = |(envelope, state): &(u32, RowState)| {
            let attempt = Attempt { envelope: *envelope, state: *state, chain: OperationKind::Sms.into() };
            (attempt, *state == RowState::Accepted)
        };
        let stored = |(order, status): &(Option<u32>, Status)| StoredReceipt {
            order: *order,
            at: Timestamp::from_second(9).unwrap(),
            receipt: Receipt::new(ReceiptSource::Webhook, status.clone()),
        };
        let first = |status| vec![(None, status)];
        let (accepted, rejected, unsent) = (RowState::Accepted, RowState::Rejected, RowState::Planned);
        for (attempts, receipts, proven) in [
            (vec![(1, rejected)], vec![], &[][..]),
            (vec![(1, rejected)], first(Status::Delivered), &[0]),
            (vec![(1, rejected)], first(Status::Routing), &[]),
            (vec![(1, rejected)], first(Status::Undeliverable), &[]),
            (vec![(1, unsent)], first(Status::Routing), &[0]),
            (vec![(1, unsent)], first(Status::Undeliverable), &[0]),
            (vec![(1, unsent)], first(Status::Rejected), &[]),
            (vec![(1, unsent)], vec![(None, Status::Rejected), (None, Status::Read)], &[0]),
            (vec![(1, unsent)], vec![(None, Status::Routing), (None, Status::Rejected)], &[0]),
            (vec![(1, RowState::NotSent), (2, unsent)], first(Status::Delivered), &[1]),
            (vec![(1, unsent), (2, accepted)], first(Status::Delivered), &[]),
            (vec![(2, rejected), (3, accepted)], first(Status::Delivered), &[0]),
            (vec![(2, rejected), (3, rejected)], vec![(Some(1), Status::Delivered)], &[1]),
        ] {
            let attempts: Vec<_> = attempts.iter().map(attempt).collect();
            let receipts: Vec<_> = receipts.iter().map(stored).collect();
            assert_eq!(events.find_proven_attempts(row, &attempts, &receipts), proven, "{attempts:?} {receipts:?}");
        }
    }
}
