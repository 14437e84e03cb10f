//! The simulated ledger answers as the real one does: the same calls to both, and the same told by both.

use jiff::Timestamp;

use super::chance::Chance;
use super::disk::instant;
use super::judge::phone;
use crate::domain::{Chain, Endpoint, MsgId, OperationKind, Outcome, Phone, Row};
use crate::ledger::memory::Contents;
use crate::ledger::{
    Allowance, Author, Change, EnvelopeRecord, Heed, Intent, Lease, Ledger, LeftOut, NewRowEvent, NewRun, OptOut,
    Ownership, Permit, Reach, RetriedRow, RetryOrder, RowEvent, RunFilter, RunId, Scope, SentRow, Settlement,
    SqliteLedger, SuppressionList as _,
};

/// The time of both ledgers: it stands still, so that the waits are the same.
const NOW: i64 = 1_800_000_000_000_000;
/// Calls per ledger, and ledgers.
const CALLS: usize = 60;
const LEDGERS: u64 = 12;
/// Rows of the run.
const ROWS: u64 = 8;

fn clock() -> Timestamp {
    instant(NOW)
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
        left_out: LeftOut::default(),
        heed: Heed::default(),
        began_at: clock(),
        random: 5,
    }
}

fn row(chance: &mut Chance) -> Row {
    Row::new(2 + chance.below(ROWS) as u32)
}

fn outcome(chance: &mut Chance) -> Outcome {
    let reason = || "reason".into();
    match chance.below(5) {
        0 => Outcome::Accepted { msg_id: Some(MsgId::Number(5)), parts: Some(1), answer: None },
        1 => Outcome::Queued { request_id: reason() },
        2 => Outcome::Rejected { error: "No route".into() },
        3 => Outcome::NotSent { reason: reason() },
        _ => Outcome::InDoubt { reason: reason() },
    }
}

fn change(chance: &mut Chance) -> Change {
    let by = Author::Person("olena".into());
    match chance.below(4) {
        0 => Change::Found { status: "DELIVERED".into(), msg_id: None, channel: None },
        1 => Change::Unresolved { asked: 20 },
        2 => Change::AssumedSent { by, why: None },
        _ => Change::SendAgain { by, why: None },
    }
}

fn intent(chance: &mut Chance, lease: Lease) -> Intent {
    let count = 1 + chance.below(3);
    let sent = |row| SentRow { row, to: Phone::new(phone(row)).unwrap().into(), digest: [7; 8], chain: Chain::UNKNOWN };
    let rows = (0..count).map(|_| sent(row(chance))).collect();
    let rate = chance.of(&[None, Some(10.0)]);
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

/// Both ledgers and what they were told so far.
struct Pair {
    real: SqliteLedger,
    model: Contents,
    run: RunId,
    envelopes: u32,
    /// The takings of the run, by the epoch that each drew.
    leases: Vec<(Lease, Lease)>,
}

impl Pair {
    /// Takes the run in both.
    async fn claim(&mut self) {
        let hold = self.real.hold("sale", "account").await.unwrap().expect("nobody has it");
        let real = self.real.claim(&hold, self.run).await.unwrap();
        let model = self.model.claim(NOW, &hold, self.run, |_| false).unwrap();
        assert_eq!(real.doubtful, model.doubtful, "claim");
        self.leases.push((real.lease, model.lease));
    }

    /// Begins an envelope in both; one that was refused takes no number.
    async fn begin(&mut self, chance: &mut Chance, leases: (Lease, Lease)) {
        let real = intent(chance, leases.0);
        let model = Intent { lease: leases.1, ..real.clone() };
        let told = self.model.begin(NOW, model).unwrap();
        assert_eq!(self.real.begin(real).await.unwrap(), told, "begin");
        if let Permit::Granted { envelope, .. } = told {
            self.envelopes += 1;
            assert_eq!(envelope, self.envelopes);
        }
    }

    /// One call to both, by whoever has the run or had it before; what both tell has to be the same.
    async fn call(&mut self, chance: &mut Chance) {
        let leases = self.leases[self.leases.len().saturating_sub(1 + chance.below(2) as usize)];
        match chance.below(9) {
            0 => self.claim().await,
            1..=3 => self.begin(chance, leases).await,
            4 | 5 if self.envelopes > 0 => {
                let envelope = 1 + chance.below(u64::from(self.envelopes)) as u32;
                let outcomes = self.model.book(self.run).unwrap().envelopes[&envelope]
                    .rows
                    .iter()
                    .map(|_| outcome(chance))
                    .collect();
                let settlement = Settlement { run: self.run, envelope, outcomes, evidence: None };
                self.real.settle(settlement.clone()).await.unwrap();
                self.model.settle(NOW, settlement).unwrap();
            }
            6 if self.envelopes > 0 => {
                let envelope = 1 + chance.below(u64::from(self.envelopes)) as u32;
                let event = NewRowEvent { row: row(chance), envelope, change: change(chance) };
                let told = self.real.record(leases.0, vec![event.clone()]).await.unwrap();
                assert_eq!(told, self.model.record(NOW, leases.1, vec![event]).unwrap(), "record");
            }
            8 => {
                let phone = Phone::new(phone(row(chance))).unwrap();
                let (reason, source) = ("STOP".into(), "a reply".into());
                let out = OptOut {
                    who: phone.into(),
                    scope: Scope::Everything,
                    reach: Reach::AllGateways,
                    reason,
                    source,
                    at: clock(),
                };
                let model = self.model.opt_outs.add(vec![out.clone()]);
                assert_eq!(self.real.suppress(vec![out]).await.unwrap(), model, "suppress");
            }
            7 => {
                let asked = chance.once_in(4);
                self.real.request_stop(self.run, asked).await.unwrap();
                self.model.request_stop(self.run, asked).unwrap();
                let account = Allowance::new("account", Some(10.0));
                let wait = self.real.reserve(&account, 3).await.unwrap();
                assert_eq!(wait, self.model.reserve(NOW, &account, 3), "reserve");
            }
            _ => {
                let wait = chance.of(&[None, Some(std::time::Duration::from_secs(3))]);
                self.real.slow_down("account", wait).await.unwrap();
                self.model.slow_down(NOW, "account", wait).unwrap();
            }
        }
    }

    /// An order to send again, and what both know after everything.
    async fn compare(mut self, chance: &mut Chance) {
        self.claim().await;
        let (real, model) = self.leases[self.leases.len() - 1];
        let by = Author::Person("olena".into());
        let order = RetryOrder { rows: vec![RetriedRow { row: row(chance), envelope: 1 }], by, random: 9 };
        assert_eq!(self.real.retry(real, order.clone()).await.unwrap(), Ownership::Held);
        assert_eq!(self.model.retry(NOW, model, order).unwrap(), Ownership::Held);
        let plain = |record: &EnvelopeRecord| {
            let rows: Vec<Row> = record.rows.iter().map(|sent| sent.row).collect();
            (record.envelope, rows, record.settled.as_ref().map(|(_, outcomes)| outcomes.clone()))
        };
        let real: Vec<_> = self.real.envelopes(self.run, 1..=u32::MAX).await.unwrap().iter().map(plain).collect();
        let model: Vec<_> = self.model.book(self.run).unwrap().envelopes.values().map(plain).collect();
        assert_eq!(real, model, "envelopes");
        let plain = |event: &RowEvent| (event.row, event.envelope, event.change.clone());
        let real: Vec<_> = self.real.events(self.run).await.unwrap().iter().map(plain).collect();
        let model: Vec<_> = self.model.book(self.run).unwrap().events.iter().map(plain).collect();
        assert_eq!(real, model, "events");
        let real = self.real.left_out(self.run).await.unwrap();
        assert_eq!(real, self.model.book(self.run).unwrap().left_out, "left out");
        let run = self.real.runs(RunFilter::all()).await.unwrap().remove(0);
        let model = self.model.runs(&RunFilter::all()).remove(0);
        assert_eq!(
            (run.epoch.is_some(), run.progress, run.ids, run.orders),
            (model.epoch.is_some(), model.progress, model.ids, model.orders)
        );
        let guarded = self.real.numbers_sent_to(&[self.run]).await.unwrap();
        assert_eq!(guarded, self.model.numbers_sent_to(&[self.run]), "guard");
    }
}

#[tokio::test]
async fn the_simulated_ledger_tells_the_same_as_the_real_one() {
    let mut begun = 0;
    for seed in 0..LEDGERS {
        let mut chance = Chance::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let real = SqliteLedger::open(&folder.path().join("ledger"), clock).await.unwrap();
        let created = real.create_run(&new_run()).await.unwrap();
        real.open_run(created.key, None).await.unwrap();
        let (run, mut model) = (created.key, Contents::default());
        let copy = model.create_run(&new_run()).unwrap();
        assert_eq!((copy.key, copy.ids), (created.key, created.ids));
        model.open_run(NOW, run, None).unwrap();
        let mut pair = Pair { real, model, run, envelopes: 0, leases: Vec::new() };
        pair.claim().await;
        // An order to send again needs an envelope to be about.
        pair.begin(&mut chance, pair.leases[0]).await;
        for _ in 0..CALLS {
            pair.call(&mut chance).await;
        }
        begun += pair.envelopes;
        pair.compare(&mut chance).await;
    }
    assert!(begun > 50, "{begun} intents prove nothing");
}
