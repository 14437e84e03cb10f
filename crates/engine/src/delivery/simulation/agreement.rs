//! Agreement of the simulated ledger with the real one: both get the same calls and must return the same results.

use jiff::Timestamp;

use super::judge::row_phone;
use super::plan::SimulationRandom;
use super::process::to_timestamp;
use campaign_core::domain::{Chain, Endpoint, GatewayMessageId, OperationKind, OperationOutcome, Phone, Row};
use campaign_ledger::memory::LedgerContents;
use campaign_ledger::{
    AdditionMode, Allowance, Author, EnvelopeFilter, EnvelopeRecord, ExcludedRows, Intent, Lease, Ledger, NewRowEvent,
    NewRun, NumberFilter, OptOut, OptOutReach, OptOutScope, Ownership, Permit, RateRequest, RetriedRow, RetryOrder,
    RowChange, RowEvent, RowUpdate, RunFilter, RunId, RunUpdate, SentRow, Settlement, SqliteLedger, StopRequest,
    SuppressionPolicy,
};

/// The fixed time of both ledgers, so that waits are equal.
const FIXED_NOW: i64 = 1_800_000_000_000_000;
/// The number of random calls to each pair of ledgers.
const CALLS: usize = 60;
/// The number of pairs of ledgers.
const LEDGERS: u64 = 12;
/// The number of rows of the run.
const ROWS: u64 = 8;

fn clock() -> Timestamp {
    to_timestamp(FIXED_NOW)
}

fn new_run() -> NewRun {
    NewRun {
        campaign: "sale".into(),
        edition: String::new(),
        gateway: "main".into(),
        account: "account".into(),
        endpoint: Endpoint::Sync,
        kind: OperationKind::Sms,
        live: true,
        round: 1,
        recipients: ROWS,
        last_row: Row::new(ROWS as u32 + 1),
        file: None,
        excluded: ExcludedRows::default(),
        suppression: SuppressionPolicy::default(),
        began_at: clock(),
        random: 5,
    }
}

fn any_row(chance: &mut SimulationRandom) -> Row {
    Row::new(2 + chance.below(ROWS) as u32)
}

fn any_outcome(chance: &mut SimulationRandom) -> OperationOutcome {
    let reason = || "reason".into();
    match chance.below(5) {
        0 => OperationOutcome::Accepted { msg_id: Some(GatewayMessageId::Number(5)), parts: Some(1), answer: None },
        1 => OperationOutcome::Queued { request_id: reason() },
        2 => OperationOutcome::Rejected { error: "No route".into() },
        3 => OperationOutcome::NotSent { reason: reason() },
        _ => OperationOutcome::InDoubt { reason: reason() },
    }
}

fn any_change(chance: &mut SimulationRandom) -> RowChange {
    let by = Author::Person("olena".into());
    match chance.below(4) {
        0 => RowChange::Found { status: "DELIVERED".into(), msg_id: None, channel: None },
        1 => RowChange::Unresolved { asked: 20 },
        2 => RowChange::AssumedSent { by, why: None },
        _ => RowChange::SendAgain { by, why: None },
    }
}

fn any_intent(chance: &mut SimulationRandom, lease: Lease) -> Intent {
    let count = 1 + chance.below(3);
    let sent =
        |row| SentRow { row, to: Phone::new(row_phone(row)).unwrap().into(), digest: [7; 8], chain: Chain::UNKNOWN };
    let rows = (0..count).map(|_| sent(any_row(chance))).collect();
    let rate = chance.pick(&[None, Some(10.0)]);
    Intent {
        lease,
        kind: OperationKind::Sms,
        account: Allowance::new("account", rate),
        rows,
        costs: Vec::new(),
        bounds: None,
        leave_by: None,
    }
}

/// Both ledgers and the calls so far.
struct LedgerPair {
    real: Box<dyn Ledger>,
    model: LedgerContents,
    run: RunId,
    envelopes: u32,
    /// The leases of the run in both ledgers.
    leases: Vec<(Lease, Lease)>,
}

impl LedgerPair {
    /// Claims the run in both ledgers.
    async fn claim_both(&mut self) {
        let lock = self.real.acquire_campaign_lock("sale", "account").await.unwrap().expect("nobody has it");
        let real = self.real.claim_run(&lock, self.run).await.unwrap();
        let model = self.model.claim_run(FIXED_NOW, &lock, self.run, |_| false).unwrap();
        assert_eq!(real.in_doubt, model.in_doubt, "claim");
        self.leases.push((real.lease, model.lease));
    }

    /// Begins an envelope in both ledgers. A refused envelope takes no number.
    async fn begin_both(&mut self, chance: &mut SimulationRandom, leases: (Lease, Lease)) {
        let real = any_intent(chance, leases.0);
        let model = Intent { lease: leases.1, ..real.clone() };
        let permit = self.model.begin_envelope(FIXED_NOW, model).unwrap();
        assert_eq!(self.real.begin_envelope(real).await.unwrap(), permit, "begin");
        if let Permit::Granted { envelope, .. } = permit {
            self.envelopes += 1;
            assert_eq!(envelope, self.envelopes);
        }
    }

    /// Makes the same call to both ledgers, as a current or former owner. Both ledgers must return the same result.
    async fn call_both(&mut self, chance: &mut SimulationRandom) {
        let leases = self.leases[self.leases.len().saturating_sub(1 + chance.below(2) as usize)];
        match chance.below(9) {
            0 => self.claim_both().await,
            1..=3 => self.begin_both(chance, leases).await,
            4 | 5 if self.envelopes > 0 => {
                let envelope = 1 + chance.below(u64::from(self.envelopes)) as u32;
                let outcomes = self.model.stored_run(self.run).unwrap().envelopes[&envelope]
                    .rows
                    .iter()
                    .map(|_| any_outcome(chance))
                    .collect();
                let settlement = Settlement { opt_outs: Vec::new(), run: self.run, envelope, outcomes, evidence: None };
                self.real.settle_envelope(settlement.clone()).await.unwrap();
                self.model.settle_envelope(FIXED_NOW, settlement).unwrap();
            }
            6 if self.envelopes > 0 => {
                let envelope = 1 + chance.below(u64::from(self.envelopes)) as u32;
                let event = NewRowEvent { row: any_row(chance), envelope, change: any_change(chance) };
                let ownership = self.real.update_rows(leases.0, RowUpdate::Events(vec![event.clone()])).await.unwrap();
                assert_eq!(ownership, self.model.record_events(FIXED_NOW, leases.1, vec![event]).unwrap(), "record");
            }
            8 => {
                let phone = Phone::new(row_phone(any_row(chance))).unwrap();
                let (reason, source) = ("STOP".into(), "a reply".into());
                let opt_out = OptOut {
                    who: phone.into(),
                    scope: OptOutScope::Marketing,
                    reach: OptOutReach::AllGateways,
                    reason,
                    source,
                    at: clock(),
                };
                let model = self.model.opt_outs.add_opt_outs(vec![opt_out.clone()]);
                let real = self.real.add_opt_outs([opt_out].into(), AdditionMode::Add).await.unwrap();
                assert_eq!(real, model, "suppress");
            }
            7 => {
                let request = if chance.once_in(4) { StopRequest::Stop } else { StopRequest::Withdraw };
                self.real.update_runs(vec![self.run], RunUpdate::Stop(request.clone())).await.unwrap();
                self.model.update_run(FIXED_NOW, self.run, RunUpdate::Stop(request)).unwrap();
                let account = Allowance::new("account", Some(10.0));
                let wait = self.real.reserve_rate(&account, 3).await.unwrap();
                assert_eq!(wait, self.model.reserve_rate(FIXED_NOW, &account, 3), "reserve");
            }
            _ => {
                let wait = chance.pick(&[None, Some(std::time::Duration::from_secs(3))]);
                let (account, request) = (Allowance::new("account", None), RateRequest::SlowDown(wait));
                let later = self.real.use_rate_limit(&account, request).await.unwrap();
                assert_eq!(later, self.model.use_rate_limit(FIXED_NOW, &account, request), "slow down");
            }
        }
    }

    /// Orders a retry, and compares everything that both ledgers store.
    async fn compare_both(mut self, chance: &mut SimulationRandom) {
        self.claim_both().await;
        let (real, model) = self.leases[self.leases.len() - 1];
        let by = Author::Person("olena".into());
        let order = RetryOrder { rows: vec![RetriedRow { row: any_row(chance), envelope: 1 }], by, random: 9 };
        assert_eq!(self.real.update_rows(real, RowUpdate::Retry(order.clone())).await.unwrap(), Ownership::Held);
        assert_eq!(self.model.retry_rows(FIXED_NOW, model, order).unwrap(), Ownership::Held);
        let comparable = |record: &EnvelopeRecord| {
            let rows: Vec<Row> = record.rows.iter().map(|sent| sent.row).collect();
            (record.envelope, rows, record.settled.as_ref().map(|(_, outcomes)| outcomes.clone()))
        };
        let real: Vec<_> = self
            .real
            .load_envelopes(self.run, EnvelopeFilter::Numbers(1..=u32::MAX))
            .await
            .unwrap()
            .iter()
            .map(comparable)
            .collect();
        let model: Vec<_> = self.model.stored_run(self.run).unwrap().envelopes.values().map(comparable).collect();
        assert_eq!(real, model, "envelopes");
        let comparable = |event: &RowEvent| (event.row, event.envelope, event.change.clone());
        let real: Vec<_> = self.real.load_events(self.run).await.unwrap().iter().map(comparable).collect();
        let model: Vec<_> = self.model.stored_run(self.run).unwrap().events.iter().map(comparable).collect();
        assert_eq!(real, model, "events");
        let real = self.real.load_excluded_rows(self.run).await.unwrap();
        assert_eq!(real, self.model.stored_run(self.run).unwrap().excluded, "excluded");
        let run = self.real.list_runs(RunFilter::all()).await.unwrap().remove(0);
        let model = self.model.list_runs(&RunFilter::all()).remove(0);
        assert_eq!(
            (run.epoch.is_some(), run.progress, run.ids, run.orders),
            (model.epoch.is_some(), model.progress, model.ids, model.orders)
        );
        let sent_numbers = self.real.load_numbers(NumberFilter::Sent(&[self.run])).await.unwrap();
        assert_eq!(sent_numbers, self.model.load_sent_numbers(&[self.run]), "guard");
    }
}

#[tokio::test]
async fn simulated_ledger_agrees_with_the_real_one() {
    let mut begun_count = 0;
    for seed in 0..LEDGERS {
        let mut chance = SimulationRandom::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let real: Box<dyn Ledger> = Box::new(SqliteLedger::open(&folder.path().join("ledger"), clock).await.unwrap());
        let created = real.create_run(&new_run(), None).await.unwrap().expect("a run");
        real.open_run(created.key, None, None).await.unwrap();
        let (run, mut model) = (created.key, LedgerContents::default());
        let copy = model.create_run(&new_run()).unwrap();
        assert_eq!((copy.key, copy.ids), (created.key, created.ids));
        model.open_run(FIXED_NOW, run, None).unwrap();
        let mut pair = LedgerPair { real, model, run, envelopes: 0, leases: Vec::new() };
        pair.claim_both().await;
        // A retry order needs an envelope.
        pair.begin_both(&mut chance, pair.leases[0]).await;
        for _ in 0..CALLS {
            pair.call_both(&mut chance).await;
        }
        begun_count += pair.envelopes;
        pair.compare_both(&mut chance).await;
    }
    assert!(begun_count > 50, "{begun_count} intents prove nothing");
}
