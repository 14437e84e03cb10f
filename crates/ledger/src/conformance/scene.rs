//! A test scene: a ledger with one open run, and operations on it.

use std::sync::Arc;

use jiff::Timestamp;
use roaring::RoaringTreemap;

use crate::{
    Allowance, Author, CampaignLock, EnvelopeFilter, Epoch, ExcludedRows, Intent, Lease, Ledger, NewReceipt,
    NewRowEvent, NewRun, NumberFilter, Ownership, Permit, PurgeOrder, ReceiptOutcome, RowChange, RowEvent, RowEvents,
    RowState, RowStates, RowUpdate, Run, RunActivity, RunEnd, RunFilter, RunId, RunProgress, SentRow, Settlement,
    SharedRun, SlotWait, StateCounts, StopKind, SuppressionPolicy,
};
use campaign_core::domain::{
    Chain, Endpoint, GatewayMessageId, OperationKind, OperationOutcome, Phone, Receipt, ReceiptSource, Row, Status,
};

/// A ledger with one open run that this process owns.
pub(crate) struct Scene {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) run: Run,
    pub(crate) lock: CampaignLock,
    /// The lease on the run, until the run is claimed again.
    pub(crate) lease: Lease,
}

/// A ledger as the trait object that callers use.
pub(crate) fn as_port(ledger: &impl Ledger) -> &dyn Ledger {
    ledger
}

/// The order to purge a run without cancelled numbers.
pub(crate) fn purge_order(counted: Run, counts: StateCounts, parts: u64) -> PurgeOrder {
    PurgeOrder { counted, counts, parts, cancelled: RoaringTreemap::new() }
}

impl Scene {
    /// A scene on an empty ledger. Its run began with the current version of the suppression list, as every run does.
    pub(crate) async fn new(ledger: Arc<dyn Ledger>) -> Self {
        let mut new = new_run(1);
        new.suppression.version = ledger.load_suppressed_numbers("sale", new.suppression).await.unwrap().version;
        Self::with_run(ledger, &new).await
    }

    /// A scene with a new run in an existing ledger.
    pub(crate) async fn with_run(ledger: Arc<dyn Ledger>, new: &NewRun) -> Self {
        let run = ledger.create_run(new, None).await.unwrap().expect("a run");
        ledger.open_run(run.key, None, None).await.unwrap();
        let lock = ledger
            .acquire_campaign_lock(&run.campaign, &run.account)
            .await
            .unwrap()
            .expect("the campaign is not locked");
        let lease = ledger.claim_run(&lock, run.key).await.unwrap().lease;
        Self { ledger, run, lock, lease }
    }

    /// The ledger as the trait object that callers use.
    pub(crate) fn port(&self) -> &dyn Ledger {
        &*self.ledger
    }

    /// Claims the run again, which ends the earlier lease.
    pub(crate) async fn claim_again(&self) -> Lease {
        self.ledger.claim_run(&self.lock, self.run.key).await.unwrap().lease
    }

    /// A lease that the ledger never granted.
    pub(crate) fn forged_lease(&self) -> Lease {
        Lease { epoch: Epoch(self.lease.epoch.0.wrapping_add(1)), ..self.lease }
    }

    /// Begins an envelope of two rows. Envelope 1 has rows 2 and 3, envelope 2 has rows 4 and 5, and so on.
    pub(crate) async fn begin_envelope(&self, envelope: u32, lease: Lease) -> Permit {
        self.ledger.begin_envelope(self.new_intent(envelope, lease)).await.unwrap()
    }

    pub(crate) fn new_intent(&self, envelope: u32, lease: Lease) -> Intent {
        let sent =
            |row| SentRow { row: Row::new(row), to: phone(row).into(), digest: [row as u8; 8], chain: Chain::UNKNOWN };
        let rows = vec![sent(envelope * 2), sent(envelope * 2 + 1)];
        let account = Allowance::new("account", None);
        Intent { lease, kind: OperationKind::ViberSms, account, rows, costs: Vec::new(), bounds: None, leave_by: None }
    }

    pub(crate) async fn settle_envelope(&self, envelope: u32, outcomes: [OperationOutcome; 2]) {
        let outcomes = outcomes.to_vec();
        self.ledger
            .settle_envelope(Settlement { opt_outs: Vec::new(), run: self.run.key, envelope, outcomes, evidence: None })
            .await
            .unwrap();
    }

    /// The states of an envelope's rows according to its outcomes. Empty for an open intent.
    pub(crate) async fn outcome_states(&self, envelope: u32) -> Vec<RowState> {
        let records =
            self.ledger.load_envelopes(self.run.key, EnvelopeFilter::Numbers(envelope..=envelope)).await.unwrap();
        let settled = records[0].settled.as_ref();
        settled.map_or_else(Vec::new, |(_, outcomes)| outcomes.iter().map(RowState::from_outcome).collect())
    }

    pub(crate) async fn record_events(&self, lease: Lease, events: Vec<NewRowEvent>) -> Ownership {
        self.ledger.update_rows(lease, RowUpdate::Events(events)).await.unwrap()
    }

    /// Stores a receipt for the original message to a row, not for a retry.
    pub(crate) async fn store_receipt(&self, row: u32, status: Status) -> ReceiptOutcome {
        self.store_receipt_of(self.run.key, row, status).await
    }

    /// Stores a receipt for the original message to a row of any run.
    pub(crate) async fn store_receipt_of(&self, run: RunId, row: u32, status: Status) -> ReceiptOutcome {
        let receipt = Receipt::new(ReceiptSource::Webhook, status);
        let new = NewReceipt { run, row: Row::new(row), order: None, receipt, opt_out: None, opt_in: None };
        self.ledger.store_receipts(vec![new]).await.unwrap()[0]
    }

    pub(crate) async fn load_events(&self) -> Vec<RowEvent> {
        self.ledger.load_events(self.run.key).await.unwrap()
    }

    /// The current record of the run.
    pub(crate) async fn reload_run(&self) -> Run {
        self.ledger.list_runs(RunFilter::all()).await.unwrap().into_iter().find(|run| run.key == self.run.key).unwrap()
    }

    pub(crate) async fn row_states(&self) -> Vec<Option<RowState>> {
        let states = self.load_row_states().await;
        (2..=5).map(|row| states.recorded_state(Row::new(row))).collect()
    }

    /// The number of rows in each state.
    pub(crate) async fn count_states(&self) -> StateCounts {
        let excluded = self.ledger.load_excluded_rows(self.run.key).await.unwrap();
        self.load_row_states().await.count_states(self.run.recipients, &excluded)
    }

    /// The excluded rows of the run.
    pub(crate) async fn excluded_rows(&self) -> Vec<u32> {
        self.ledger.load_excluded_rows(self.run.key).await.unwrap().rows().iter().collect()
    }

    async fn load_row_states(&self) -> RowStates {
        let excluded = self.ledger.load_excluded_rows(self.run.key).await.unwrap();
        let events = RowEvents::new(self.load_events().await, self.run.endpoint).with_excluded_rows(&excluded);
        let mut states = RowStates::new(RunActivity::Idle, events);
        for envelope in self.ledger.load_envelopes(self.run.key, EnvelopeFilter::Numbers(1..=10)).await.unwrap() {
            states.add_envelope(&envelope);
        }
        for (row, receipts) in self.ledger.load_receipts(self.run.key, 0..10).await.unwrap() {
            states.add_receipts(row, &receipts);
        }
        states
    }

    /// The rows from 2 to 5 whose numbers are guarded.
    pub(crate) async fn guarded_rows(&self) -> Vec<u32> {
        let numbers = self.ledger.load_numbers(NumberFilter::Sent(&[self.run.key])).await.unwrap();
        (2..=5).filter(|&row| numbers.contains(phone(row))).collect()
    }
}

pub(crate) fn granted(envelope: u32) -> Permit {
    Permit::Granted { envelope, wait: SlotWait::NONE }
}

pub(crate) fn phone(row: u32) -> Phone {
    Phone::new(380_501_234_000 + u64::from(row)).unwrap()
}

pub(crate) fn new_run(random: u64) -> NewRun {
    let mut excluded = ExcludedRows::default();
    excluded.insert(Row::new(9), RowState::Invalid, "too short");
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
        excluded,
        suppression: SuppressionPolicy::default(),
        file: Some("/campaigns/sale.yaml".to_owned()),
        began_at: Timestamp::now(),
        random,
    }
}

/// The shared run to which these tests add single messages.
pub(crate) fn shared_run() -> SharedRun {
    SharedRun {
        campaign: "gateway.test".into(),
        edition: String::new(),
        gateway: "main".into(),
        account: "account".into(),
        endpoint: Endpoint::Sync,
        kind: OperationKind::Hlr,
        live: true,
        suppression: SuppressionPolicy::SERVICE,
    }
}

/// An intent for one row of a block.
pub(crate) fn single_intent(lease: Lease, row: u32) -> Intent {
    let rows = vec![SentRow { row: Row::new(row), to: phone(row).into(), digest: [0; 8], chain: Chain::UNKNOWN }];
    let account = Allowance::new("account", None);
    Intent { lease, kind: OperationKind::Hlr, account, rows, costs: Vec::new(), bounds: None, leave_by: None }
}

pub(crate) fn run_end() -> RunEnd {
    RunEnd {
        progress: RunProgress::Finished,
        stop_reason: Some("asked to stop".into()),
        stop: Some(StopKind::Interrupted(15)),
        counts: StateCounts::default(),
        parts: 12,
        receipts: 0,
        results: Some("results.csv".into()),
        lag: None,
        at: Timestamp::now(),
        notifications: Vec::new(),
    }
}

pub(crate) fn accepted() -> OperationOutcome {
    OperationOutcome::Accepted { msg_id: Some(GatewayMessageId::Number(5)), parts: Some(2), answer: None }
}

pub(crate) fn rejected() -> OperationOutcome {
    OperationOutcome::Rejected { error: "No route".into() }
}

pub(crate) fn not_sent() -> OperationOutcome {
    OperationOutcome::NotSent { reason: "refused".into() }
}

pub(crate) fn in_doubt() -> OperationOutcome {
    OperationOutcome::InDoubt { reason: "silence".into() }
}

pub(crate) fn author() -> Author {
    Author::Person("olena".into())
}

pub(crate) fn event(row: u32, envelope: u32, change: RowChange) -> NewRowEvent {
    NewRowEvent { row: Row::new(row), envelope, change }
}

pub(crate) fn send_again() -> RowChange {
    RowChange::SendAgain { by: author(), why: Some("the operator confirmed".into()) }
}

pub(crate) fn not_sent_after_all() -> RowChange {
    RowChange::NotSent { by: author(), why: None }
}

pub(crate) fn found(status: &str) -> RowChange {
    RowChange::Found { status: status.into(), msg_id: None, channel: None }
}
