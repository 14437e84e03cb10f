//! Simulated processes and the disk that survives them, with the clocks of their world.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::judge::Sighting;
use super::shards::PlaceLocks;
use campaign_core::domain::Row;
use campaign_ledger::memory::{LedgerContents, StoredRun};
use campaign_ledger::{
    Epoch, Intent, LedgerError, NewRun, Permit, RowState, RowStates, RunActivity, RunId, Settlement, StateCounts,
};

/// The wall clock at the start of every world, in microseconds.
const WORLD_START: WallMicros = 1_800_000_000_000_000;

thread_local! {
    /// The time at which this thread's world began; a world lives on one thread.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
    /// The shift of the wall clock since the world began, in microseconds; negative if the clock was set back.
    static SHIFT: Cell<i64> = const { Cell::new(0) };
}

/// Begins a world: its wall clock and its monotonic clock start together.
pub(super) fn begin_world() {
    BEGAN.set(Some(Instant::now()));
    SHIFT.set(0);
}

/// Sets the wall clock forward or back.
pub(super) fn shift_wall_clock(by: SignedDuration) {
    SHIFT.set(SHIFT.get() + by.as_micros() as i64);
}

/// The time since the world began, by the monotonic clock.
pub(super) fn elapsed() -> Duration {
    BEGAN.get().map_or(Duration::ZERO, |began| began.elapsed())
}

/// The wall clock of the world.
pub(super) fn wall_now() -> Timestamp {
    Timestamp::from_microsecond(WORLD_START + elapsed().as_micros() as i64 + SHIFT.get())
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The remaining life of a process.
#[derive(Debug)]
struct LifeState {
    /// The steps until the process ends. `None` if it does not end by itself.
    steps: Option<u64>,
    /// The steps until the process is suspended, and the duration of the suspension.
    suspension: Option<(u64, Duration)>,
    suspended_until: Option<Instant>,
    is_dead: bool,
}

/// The life of one process.
#[derive(Debug)]
pub(super) struct ProcessLife {
    state: Mutex<LifeState>,
    end: Notify,
}

impl ProcessLife {
    /// A life that ends after `steps` steps, if they are given, and is suspended once, if `suspension` is given.
    pub(super) fn new(steps: Option<u64>, suspension: Option<(u64, Duration)>) -> Self {
        Self {
            state: Mutex::new(LifeState { steps, suspension, suspended_until: None, is_dead: false }),
            end: Notify::new(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.state.lock().unwrap().is_dead
    }

    pub(super) fn was_suspended(&self) -> bool {
        self.state.lock().unwrap().suspended_until.is_some()
    }

    /// Kills the process.
    pub(super) fn kill(&self) {
        self.state.lock().unwrap().is_dead = true;
        self.end.notify_one();
    }

    /// Waits until the process ends.
    pub(super) async fn wait_for_end(&self) {
        self.end.notified().await;
    }

    /// Takes one step, in which the process can end or be suspended.
    pub(super) async fn take_step(&self) {
        loop {
            match self.next_turn() {
                StepTurn::Over => return std::future::pending().await,
                StepTurn::Wait(until) => sleep_until(until).await,
                StepTurn::Go => return,
            }
        }
    }

    /// Waits until the process is not suspended, or forever if it has ended. This does not count as a step.
    pub(super) async fn wait_until_awake(&self) {
        loop {
            let until = {
                let state = self.state.lock().unwrap();
                (!state.is_dead).then_some(state.suspended_until)
            };
            match until {
                None => return std::future::pending().await,
                Some(Some(until)) if until > Instant::now() => sleep_until(until).await,
                Some(_) => return,
            }
        }
    }

    fn next_turn(&self) -> StepTurn {
        let mut state = self.state.lock().unwrap();
        if state.is_dead {
            return StepTurn::Over;
        }
        if let Some(until) = state.suspended_until.filter(|until| *until > Instant::now()) {
            return StepTurn::Wait(until);
        }
        if let Some((steps, time)) = &mut state.suspension {
            *steps = steps.saturating_sub(1);
            if *steps == 0 {
                let until = Instant::now() + *time;
                state.suspension = None;
                state.suspended_until = Some(until);
                return StepTurn::Wait(until);
            }
        }
        if let Some(steps) = &mut state.steps {
            *steps = steps.saturating_sub(1);
            if *steps == 0 {
                state.is_dead = true;
                self.end.notify_one();
                return StepTurn::Over;
            }
        }
        StepTurn::Go
    }
}

/// What a process does at a step.
enum StepTurn {
    Go,
    Wait(Instant),
    Over,
}

/// The wall clock in microseconds.
pub(super) type WallMicros = i64;

/// The data that survives the end of a process.
pub(super) struct SimulatedDisk {
    pub(super) contents: LedgerContents,
    /// The number of intents for each row, over all runs.
    pub(super) intents: HashMap<Row, u32>,
    /// The locks on the places of workers that share a run.
    pub(super) places: PlaceLocks,
    /// The process of each worker, by the worker's epoch.
    pub(super) workers: HashMap<Epoch, Arc<ProcessLife>>,
    /// Situations that occurred.
    pub(super) sightings: BTreeMap<Sighting, u64>,
    /// The number of envelopes to which a ledger with a planted mistake gave a number without recording an intent.
    unrecorded: u32,
}

impl SimulatedDisk {
    /// An empty disk, whose epochs derive from the seed.
    pub(super) fn new(seed: u64) -> Self {
        let (contents, places) = (LedgerContents::seeded(seed), PlaceLocks::default());
        let (intents, workers, sightings) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        Self { contents, intents, places, workers, sightings, unrecorded: 0 }
    }

    pub(super) fn record_sighting(&mut self, sighting: Sighting) {
        *self.sightings.entry(sighting).or_default() += 1;
    }

    /// Begins a run on this disk. Returns the run's identifier.
    pub(super) fn begin_run(&mut self, now: WallMicros, new: &NewRun) -> RunId {
        let run = self.contents.create_run(new).expect("identifiers are left");
        self.contents.open_run(now, run.key, None).expect("it was created");
        run.key
    }

    /// A run with all its data.
    pub(super) fn stored_run(&self, run: RunId) -> &StoredRun {
        self.contents.stored_run(run).expect("runs are never removed")
    }

    /// Counts the rows of a run in each state, according to the data on the disk.
    pub(super) fn count_states(&self, run: RunId) -> StateCounts {
        let stored = self.stored_run(run);
        self.row_states(run, RunActivity::Sending).count_states(stored.run.recipients, &stored.excluded)
    }

    /// The state of a row according to the records on the disk. `None` if the row was never sent.
    pub(super) fn row_state(&self, run: RunId, row: Row) -> Option<RowState> {
        self.row_states(run, RunActivity::Idle).recorded_state(row)
    }

    /// Whether an envelope that contains this row is still unsettled.
    pub(super) fn has_unsettled_envelope(&self, run: RunId, row: Row) -> bool {
        let unsettled = self.stored_run(run).envelopes.values().filter(|envelope| envelope.settled.is_none());
        unsettled.flat_map(|envelope| &envelope.rows).any(|sent| sent.row == row)
    }

    fn row_states(&self, run: RunId, activity: RunActivity) -> RowStates {
        let stored = self.stored_run(run);
        let mut states = RowStates::new(activity, stored.row_events());
        stored.envelopes.values().for_each(|envelope| states.add_envelope(envelope));
        stored.receipts.iter().for_each(|(row, receipts)| states.add_receipts(*row, receipts));
        states
    }

    pub(super) fn begin_envelope(&mut self, now: WallMicros, intent: Intent) -> Result<Permit, LedgerError> {
        let rows: Vec<Row> = intent.rows.iter().map(|sent| sent.row).collect();
        let permit = self.contents.begin_envelope(now, intent)?;
        if matches!(permit, Permit::Granted { .. }) {
            self.count_intents(rows);
        }
        Ok(permit)
    }

    /// Stores an intent without checking the owner of the run or reserving a slot.
    pub(super) fn insert_intent(&mut self, now: WallMicros, envelope: u32, intent: Intent) -> Result<(), LedgerError> {
        self.count_intents(intent.rows.iter().map(|sent| sent.row));
        self.contents.stored_run_mut(intent.lease.run)?.insert_envelope(to_timestamp(now), envelope, intent)
    }

    /// A unique number for an envelope without an intent.
    pub(super) fn next_unrecorded(&mut self) -> u32 {
        self.unrecorded += 1;
        1_000_000 + self.unrecorded
    }

    fn count_intents(&mut self, rows: impl IntoIterator<Item = Row>) {
        rows.into_iter().for_each(|row| *self.intents.entry(row).or_default() += 1);
    }

    /// Settles an envelope if it exists. A process that records no intents also settles unknown envelopes, which has no
    /// effect.
    pub(super) fn settle_envelope(&mut self, now: WallMicros, settlement: Settlement) -> Result<(), LedgerError> {
        match self.stored_run(settlement.run).envelopes.contains_key(&settlement.envelope) {
            true => self.contents.settle_envelope(now, settlement),
            false => Ok(()),
        }
    }
}

pub(super) fn to_timestamp(now: WallMicros) -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(now).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}
