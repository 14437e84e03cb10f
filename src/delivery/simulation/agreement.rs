//! The simulated ledger answers as the real one does: the same calls to both, and the same told by both.

use jiff::Timestamp;

use super::chance::Chance;
use super::disk::instant;
use super::judge::phone;
use crate::domain::{Endpoint, MsgId, OperationKind, Outcome, Phone, Row};
use crate::ledger::memory::Contents;
use crate::ledger::{
    Allowance, Author, Change, EnvelopeRecord, Intent, Ledger, LeftOut, NewRowEvent, NewRun, Owner, Ownership, Permit,
    RetriedRow, RetryOrder, RowEvent, RunId, SentRow, Settlement, SqliteLedger,
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
        left_out: LeftOut::default(),
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
        0 => Change::Found { status: "DELIVERED".into(), msg_id: None },
        1 => Change::Unresolved { asked: 20 },
        2 => Change::AssumedSent { by, why: None },
        _ => Change::SendAgain { by, why: None },
    }
}

/// Both ledgers and what they were told so far.
struct Pair {
    real: SqliteLedger,
    model: Contents,
    run: RunId,
    envelopes: u32,
}

impl Pair {
    fn intent(&mut self, chance: &mut Chance, owner: Owner) -> Intent {
        self.envelopes += 1;
        let count = 1 + chance.below(3);
        let sent = |row| SentRow { row, phone: Phone::new(phone(row)).unwrap(), digest: [7; 8] };
        let rows = (0..count).map(|_| sent(row(chance))).collect();
        let rate = chance.of(&[None, Some(10.0)]);
        Intent { run: self.run, envelope: self.envelopes, owner, account: Allowance::new("account", rate), rows }
    }

    /// One call to both, by one of two owners; what both tell has to be the same.
    async fn call(&mut self, chance: &mut Chance) {
        let owner = Owner(1 + chance.below(2) as i64);
        match chance.below(8) {
            0 => {
                let told = self.real.claim(self.run, owner).await.unwrap();
                assert_eq!(told, self.model.claim(NOW, self.run, owner).unwrap(), "claim");
            }
            1..=3 => {
                let intent = self.intent(chance, owner);
                let told = self.model.begin(NOW, intent.clone()).unwrap();
                assert_eq!(self.real.begin(intent).await.unwrap(), told, "begin");
                // The number of an intent that was refused is free.
                self.envelopes -= u32::from(!matches!(told, Permit::After(_)));
            }
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
                let told = self.real.record(self.run, owner, vec![event.clone()]).await.unwrap();
                assert_eq!(told, self.model.record(NOW, self.run, owner, vec![event]).unwrap(), "record");
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
        let owner = Owner(1);
        let claimed = self.real.claim(self.run, owner).await.unwrap();
        assert_eq!(claimed, self.model.claim(NOW, self.run, owner).unwrap(), "claim");
        let by = Author::Person("olena".into());
        let order =
            RetryOrder { run: self.run, rows: vec![RetriedRow { row: row(chance), envelope: 1 }], by, random: 9 };
        assert_eq!(self.real.retry(owner, order.clone()).await.unwrap(), Ownership::Held);
        assert_eq!(self.model.retry(NOW, owner, order).unwrap(), Ownership::Held);
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
        let run = self.real.runs().await.unwrap().remove(0);
        let model = self.model.runs().remove(0);
        assert_eq!(
            (run.owner, run.progress, run.ids, run.orders),
            (model.owner, model.progress, model.ids, model.orders)
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
        let mut pair = Pair { real, model, run, envelopes: 0 };
        // An order to send again needs an envelope to be about.
        let intent = pair.intent(&mut chance, Owner(1));
        pair.real.claim(run, Owner(1)).await.unwrap();
        pair.model.claim(NOW, run, Owner(1)).unwrap();
        assert_eq!(pair.real.begin(intent.clone()).await.unwrap(), pair.model.begin(NOW, intent).unwrap(), "begin");
        for _ in 0..CALLS {
            pair.call(&mut chance).await;
        }
        begun += pair.envelopes;
        pair.compare(&mut chance).await;
    }
    assert!(begun > 50, "{begun} intents prove nothing");
}
