//! What is on the disk: the ledger's promises in memory, made of the pure parts of the real one.
//!
//! The real ledger writes on threads of its own, and a virtual clock does not wait for them: it would run through
//! every time-out while the disk works. That this one answers as SQLite does is tested in `agreement`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::domain::{IdRange, Outcome, Row};
use crate::ledger::{
    AccountPace, Activity, Allowance, Begun, Change, ENDED_EARLY, EnvelopeRecord, Event, Intent, LeftOut, NewEvent,
    Owner, Progress, Question, Recorded, RetryOrder, RowStates, Run, RunEnd, Settlement, State, StateCounts, Wait,
};

/// The wall clock in microseconds.
pub(super) type Now = i64;

/// What survives the end of a process: one run and the paces of the accounts.
pub(super) struct Disk {
    pub(super) run: Run,
    pub(super) envelopes: BTreeMap<u32, EnvelopeRecord>,
    pub(super) events: Vec<Event>,
    pub(super) questions: BTreeMap<Row, Question>,
    pub(super) paces: HashMap<String, AccountPace>,
    /// How many intents name a row.
    pub(super) intents: HashMap<Row, u32>,
}

impl Disk {
    pub(super) fn new(run: Run) -> Self {
        Self {
            run,
            envelopes: BTreeMap::new(),
            events: Vec::new(),
            questions: BTreeMap::new(),
            paces: HashMap::new(),
            intents: HashMap::new(),
        }
    }

    /// How many rows are in each state by what is on the disk now.
    pub(super) fn counts(&self) -> StateCounts {
        let mut states = RowStates::new(Activity::Sending, self.events.clone().into());
        self.envelopes.values().for_each(|envelope| states.add(envelope));
        states.counts(self.run.recipients, &LeftOut::default())
    }

    pub(super) fn claim(&mut self, now: Now, owner: Owner) -> usize {
        self.run.owner = Some(owner);
        let reason: Arc<str> = ENDED_EARLY.into();
        let open = self.envelopes.values_mut().filter(|envelope| envelope.settled.is_none());
        open.map(|envelope| {
            let outcomes = vec![Outcome::InDoubt { reason: Arc::clone(&reason) }; envelope.rows.len()];
            envelope.settled = Some((instant(now), outcomes));
        })
        .count()
    }

    /// Whether an intent may be recorded; nothing if it may.
    pub(super) fn refuses(&self, owner: Owner) -> Option<Begun> {
        if self.run.owner != Some(owner) {
            return Some(Begun::NotOwner);
        }
        self.run.stop_requested.then_some(Begun::StopRequested)
    }

    pub(super) fn begin(&mut self, now: Now, intent: &Intent) -> Begun {
        if let Some(refusal) = self.refuses(intent.owner) {
            return refusal;
        }
        self.insert(now, intent);
        let account = &intent.account;
        let held = self.paces.get(&*account.name).is_some_and(|pace| pace.not_before > now);
        if account.rate.is_none() && !held {
            return Begun::After(Wait::NONE);
        }
        let count = u32::try_from(intent.rows.len()).unwrap_or(u32::MAX);
        Begun::After(self.reserve(now, account, count))
    }

    pub(super) fn insert(&mut self, now: Now, intent: &Intent) {
        for sent in &intent.rows {
            *self.intents.entry(sent.row).or_default() += 1;
        }
        let rows = intent.rows.clone();
        let record = EnvelopeRecord { envelope: intent.envelope, begun_at: instant(now), rows, settled: None };
        self.envelopes.insert(intent.envelope, record);
    }

    pub(super) fn reserve(&mut self, now: Now, account: &Allowance, count: u32) -> Wait {
        let pace = self.paces.entry(account.name.to_string()).or_default();
        let reservation = pace.reserve(now, count, account.rate);
        *pace = reservation.pace;
        reservation.wait
    }

    pub(super) fn slow_down(&mut self, now: Now, account: &str, wait: Option<Duration>) {
        let pace = self.paces.entry(account.to_owned()).or_default();
        *pace = pace.slowed(now, wait.and_then(|wait| i64::try_from(wait.as_micros()).ok()));
    }

    pub(super) fn settle(&mut self, now: Now, settlement: Settlement) {
        let Some(envelope) = self.envelopes.get_mut(&settlement.envelope) else { return };
        let outcomes = match &envelope.settled {
            None => settlement.outcomes,
            Some((_, known)) => {
                let pairs = known.iter().cloned().zip(settlement.outcomes);
                pairs.map(|(known, told)| if proves(&known, &told) { told } else { known }).collect()
            }
        };
        envelope.settled = Some((instant(now), outcomes));
    }

    pub(super) fn record(&mut self, now: Now, owner: Owner, events: Vec<NewEvent>) -> Recorded {
        if self.run.owner != Some(owner) {
            return Recorded::NotOwner;
        }
        for NewEvent { row, envelope, change } in events {
            if change.state() == Some(State::Planned) {
                self.run.progress = Progress::Open;
            }
            self.events.push(Event { row, envelope, at: instant(now), change });
        }
        Recorded::Done
    }

    pub(super) fn retry(&mut self, now: Now, owner: Owner, order: RetryOrder) -> Recorded {
        if self.run.owner != Some(owner) {
            return Recorded::NotOwner;
        }
        let mut ids = IdRange::draw(300, order.random, self.run.ids.len);
        while ids.overlaps(self.run.ids) || self.run.orders.iter().any(|known| ids.overlaps(*known)) {
            ids.first += ids.len;
        }
        self.run.orders.push(ids);
        let number = self.run.orders.len() as u32;
        let by = order.by;
        let event =
            |(row, envelope)| NewEvent { row, envelope, change: Change::Retry { by: by.clone(), order: number } };
        self.record(now, owner, order.rows.into_iter().map(event).collect())
    }

    pub(super) fn end(&mut self, owner: Owner, end: RunEnd) {
        if self.run.owner == Some(owner) {
            self.run.owner = None;
            self.run.stop_requested = false;
            self.run.progress = end.progress;
            self.run.lag = self.run.lag.max(end.lag);
        }
    }
}

/// Whether an answer that came after its envelope was settled says more than what is known.
fn proves(known: &Outcome, told: &Outcome) -> bool {
    State::of(told) != State::Planned && State::of(known).can_become(State::of(told))
}

pub(super) fn instant(now: Now) -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(now).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}
