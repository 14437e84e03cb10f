//! A ledger with one open run, and what can be done with it.

use jiff::Timestamp;

use crate::domain::{Chain, Endpoint, MsgId, OperationKind, Outcome, Phone, Receipt, ReceiptSource, Row, Status};
use crate::ledger::{
    Activity, Allowance, Author, Change, Epoch, Heed, Hold, Intent, Lease, Ledger, LeftOut, NewReceipt, NewRowEvent,
    NewRun, Ownership, Permit, Progress, Reception, RowEvent, RowEvents, RowStates, Run, RunEnd, RunFilter, SentRow,
    Settlement, SharedRun, State, StateCounts, StopKind, Wait,
};

/// A ledger with one open run that this process has.
pub(in crate::ledger) struct Scene<L> {
    pub(in crate::ledger) ledger: L,
    pub(in crate::ledger) run: Run,
    pub(in crate::ledger) hold: Hold,
    /// The right to the run, until it is taken again.
    pub(in crate::ledger) mine: Lease,
}

impl<L: Ledger> Scene<L> {
    /// The scene on a ledger that is empty.
    pub(in crate::ledger) async fn on(ledger: L) -> Self {
        Self::of(ledger, &new_run(1)).await
    }

    /// The scene on a ledger that has other runs.
    pub(in crate::ledger) async fn of(ledger: L, new: &NewRun) -> Self {
        let run = ledger.create_run(new).await.unwrap();
        ledger.open_run(run.key, None).await.unwrap();
        let hold = ledger.hold(&run.campaign, &run.account).await.unwrap().expect("nobody has it");
        let mine = ledger.claim(&hold, run.key).await.unwrap().lease;
        Self { ledger, run, hold, mine }
    }

    /// Takes the run again: what was had before is lost.
    pub(in crate::ledger) async fn take(&self) -> Lease {
        self.ledger.claim(&self.hold, self.run.key).await.unwrap().lease
    }

    /// A right to the run that nobody was given.
    pub(in crate::ledger) fn forged(&self) -> Lease {
        Lease { epoch: Epoch(self.mine.epoch.0.wrapping_add(1)), ..self.mine }
    }

    /// Begins an envelope of two rows: of the first the rows 2 and 3, and so on.
    pub(in crate::ledger) async fn begin(&self, envelope: u32, lease: Lease) -> Permit {
        self.ledger.begin(self.intent(envelope, lease)).await.unwrap()
    }

    pub(in crate::ledger) fn intent(&self, envelope: u32, lease: Lease) -> Intent {
        let row =
            |row| SentRow { row: Row::new(row), to: phone(row).into(), digest: [row as u8; 8], chain: Chain::UNKNOWN };
        let rows = vec![row(envelope * 2), row(envelope * 2 + 1)];
        let account = Allowance::new("account", None);
        Intent { lease, kind: OperationKind::ViberSms, account, rows, costs: Vec::new(), bounds: None, leave_by: None }
    }

    pub(in crate::ledger) async fn settle(&self, envelope: u32, outcomes: [Outcome; 2]) {
        let outcomes = outcomes.to_vec();
        self.ledger.settle(Settlement { run: self.run.key, envelope, outcomes, evidence: None }).await.unwrap();
    }

    pub(in crate::ledger) async fn states(&self, envelope: u32) -> Vec<State> {
        let records = self.ledger.envelopes(self.run.key, envelope..=envelope).await.unwrap();
        let settled = records[0].settled.as_ref();
        settled.map_or_else(Vec::new, |(_, outcomes)| outcomes.iter().map(State::of).collect())
    }

    pub(in crate::ledger) async fn record(&self, lease: Lease, events: Vec<NewRowEvent>) -> Ownership {
        self.ledger.record(lease, events).await.unwrap()
    }

    /// Receives a receipt about the run's own message of a row.
    pub(in crate::ledger) async fn receive(&self, row: u32, status: Status) -> Reception {
        let receipt = Receipt::new(ReceiptSource::Webhook, status);
        let new = NewReceipt { run: self.run.key, row: Row::new(row), order: None, receipt, opt_out: None };
        self.ledger.receive(vec![new]).await.unwrap()[0]
    }

    pub(in crate::ledger) async fn events(&self) -> Vec<RowEvent> {
        self.ledger.events(self.run.key).await.unwrap()
    }

    /// The run as it stands.
    pub(in crate::ledger) async fn now(&self) -> Run {
        self.ledger.runs(RunFilter::all()).await.unwrap().into_iter().find(|run| run.key == self.run.key).unwrap()
    }

    /// The states of the rows 2 to 5.
    pub(in crate::ledger) async fn row_states(&self) -> Vec<Option<State>> {
        let states = self.folded().await;
        (2..=5).map(|row| states.recorded(Row::new(row))).collect()
    }

    /// How many of its rows are in each state.
    pub(in crate::ledger) async fn counts(&self) -> StateCounts {
        let left_out = self.ledger.left_out(self.run.key).await.unwrap();
        self.folded().await.counts(self.run.recipients, &left_out)
    }

    /// The rows that are left out.
    pub(in crate::ledger) async fn left_out(&self) -> Vec<u32> {
        self.ledger.left_out(self.run.key).await.unwrap().rows().iter().collect()
    }

    async fn folded(&self) -> RowStates {
        let left_out = self.ledger.left_out(self.run.key).await.unwrap();
        let events = RowEvents::from(self.events().await).leaving_out(&left_out);
        let mut states = RowStates::new(Activity::Idle, events);
        for envelope in self.ledger.envelopes(self.run.key, 1..=10).await.unwrap() {
            states.add(&envelope);
        }
        for (row, receipts) in self.ledger.receipts(self.run.key, 0..10).await.unwrap() {
            states.tell(row, &receipts);
        }
        states
    }

    /// The rows, of 2 to 5, whose numbers the guard skips.
    pub(in crate::ledger) async fn guarded(&self) -> Vec<u32> {
        let numbers = self.ledger.numbers_sent_to(&[self.run.key]).await.unwrap();
        (2..=5).filter(|&row| numbers.contains(phone(row))).collect()
    }
}

pub(in crate::ledger) fn granted(envelope: u32) -> Permit {
    Permit::Granted { envelope, wait: Wait::NONE }
}

pub(in crate::ledger) fn phone(row: u32) -> Phone {
    Phone::new(380_501_234_000 + u64::from(row)).unwrap()
}

pub(in crate::ledger) fn new_run(random: u64) -> NewRun {
    let mut left_out = LeftOut::default();
    left_out.insert(Row::new(9), State::Invalid, "too short");
    NewRun {
        campaign: "sale".into(),
        edition: String::new(),
        gateway: "main".into(),
        account: "account".into(),
        endpoint: Endpoint::Async,
        kind: OperationKind::ViberSms,
        live: true,
        round: 1,
        recipients: 10,
        last_row: Row::new(11),
        left_out,
        heed: Heed::default(),
        file: Some("/campaigns/sale.yaml".to_owned()),
        began_at: Timestamp::now(),
        random,
    }
}

/// What single messages share a run by.
pub(in crate::ledger) fn shared_run() -> SharedRun {
    SharedRun {
        campaign: "gateway.test".into(),
        edition: String::new(),
        gateway: "main".into(),
        account: "account".into(),
        endpoint: Endpoint::Sync,
        kind: OperationKind::Hlr,
        live: true,
        heed: Heed::NOBODY,
    }
}

/// An intent for one row of a block.
pub(in crate::ledger) fn single_intent(lease: Lease, row: u32) -> Intent {
    let rows = vec![SentRow { row: Row::new(row), to: phone(row).into(), digest: [0; 8], chain: Chain::UNKNOWN }];
    let account = Allowance::new("account", None);
    Intent { lease, kind: OperationKind::Hlr, account, rows, costs: Vec::new(), bounds: None, leave_by: None }
}

pub(in crate::ledger) fn run_end() -> RunEnd {
    RunEnd {
        progress: Progress::Finished,
        stopped: Some("asked to stop".into()),
        stop: Some(StopKind::Interrupted(15)),
        counts: StateCounts::default(),
        parts: 12,
        receipts: 0,
        results: Some("results.csv".into()),
        lag: None,
        at: Timestamp::now(),
        told: Vec::new(),
    }
}

pub(in crate::ledger) fn accepted() -> Outcome {
    Outcome::Accepted { msg_id: Some(MsgId::Number(5)), parts: Some(2), answer: None }
}

pub(in crate::ledger) fn rejected() -> Outcome {
    Outcome::Rejected { error: "No route".into() }
}

pub(in crate::ledger) fn not_sent() -> Outcome {
    Outcome::NotSent { reason: "refused".into() }
}

pub(in crate::ledger) fn doubt() -> Outcome {
    Outcome::InDoubt { reason: "silence".into() }
}

pub(in crate::ledger) fn by() -> Author {
    Author::Person("olena".into())
}

pub(in crate::ledger) fn event(row: u32, envelope: u32, change: Change) -> NewRowEvent {
    NewRowEvent { row: Row::new(row), envelope, change }
}

pub(in crate::ledger) fn again() -> Change {
    Change::SendAgain { by: by(), why: Some("the operator confirmed".into()) }
}

pub(in crate::ledger) fn not_sent_after_all() -> Change {
    Change::NotSent { by: by(), why: None }
}

pub(in crate::ledger) fn found(status: &str) -> Change {
    Change::Found { status: status.into(), msg_id: None, channel: None }
}
