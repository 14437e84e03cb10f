//! Runs for the tests: a ledger in memory with a run whose rows fared somehow.

use jiff::Timestamp;
use proptest::prelude::*;

use crate::domain::{
    Chain, Channel, Endpoint, OperationKind, Outcome, Phone, Receipt, ReceiptSource, ReportedChannel, Row, Status,
};
use crate::ledger::memory::{Contents, MemoryLedger};
use crate::ledger::{
    Allowance, Heed, Intent, Ledger as _, LeftOut, NewReceipt, NewRun, Permit, Receipts as _, Run, RunFilter, SentRow,
    Settlement, State,
};

/// How a row fared.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// It is left out, for this reason.
    Out(String),
    /// It is not sent yet.
    Waits,
    /// Its request has no answer.
    Silent,
    /// This became of it, and this was told of it afterwards: by which channel, and what.
    Sent(Outcome, Vec<(Option<Channel>, Status, Option<String>)>),
}

/// Any fate, with these words wherever somebody says some.
pub(crate) fn fate(words: impl Strategy<Value = String> + Clone + 'static) -> impl Strategy<Value = Fate> {
    let outcome = prop_oneof![
        4 => (0..3_u32).prop_map(|parts| Outcome::Accepted { msg_id: None, parts: Some(parts), answer: None }),
        1 => words.clone().prop_map(|error| Outcome::Rejected { error }),
        1 => words.clone().prop_map(|reason| Outcome::InDoubt { reason: reason.into() }),
    ];
    let channel = prop_oneof![Just(None), Just(Some(Channel::Viber)), Just(Some(Channel::Sms))];
    let status = proptest::sample::select(Status::KNOWN.to_vec());
    let told = (channel, status, proptest::option::of(words.clone()));
    prop_oneof![
        1 => words.prop_map(Fate::Out),
        1 => Just(Fate::Waits),
        1 => Just(Fate::Silent),
        6 => (outcome, proptest::collection::vec(told, 0..4)).prop_map(|(outcome, told)| Fate::Sent(outcome, told)),
    ]
}

/// A run that is about to begin, of so many rows with this last one.
pub(crate) fn new_run(kind: OperationKind, (recipients, last_row): (u64, Row)) -> NewRun {
    NewRun {
        campaign: "sale".into(),
        edition: String::new(),
        gateway: "main".into(),
        account: "main".into(),
        endpoint: Endpoint::Sync,
        kind,
        live: true,
        round: 1,
        recipients,
        last_row,
        left_out: LeftOut::default(),
        heed: Heed::default(),
        began_at: Timestamp::UNIX_EPOCH,
        random: 1,
        file: None,
    }
}

/// A ledger with a run of these rows, each with a request of its own.
pub(crate) async fn scene(fates: &[Fate]) -> (MemoryLedger, Run) {
    let ledger = MemoryLedger::new(Contents::default(), || Timestamp::UNIX_EPOCH);
    let rows = || (Row::FIRST.get()..).map(Row::new).zip(fates);
    let mut left_out = LeftOut::default();
    for (row, fate) in rows() {
        if let Fate::Out(why) = fate {
            left_out.insert(row, State::Skipped, why);
        }
    }
    let last = rows().last().map_or(Row::FIRST, |(row, _)| row);
    let new = NewRun { left_out, ..new_run(OperationKind::ViberSms, (fates.len() as u64, last)) };
    let run = ledger.create_run(&new).await.unwrap();
    ledger.open_run(run.key, None).await.unwrap();
    let hold = ledger.hold("sale", "main").await.unwrap().unwrap();
    let lease = ledger.claim(&hold, run.key).await.unwrap().lease;
    for (row, fate) in rows() {
        let (outcome, told) = match fate {
            Fate::Out(_) | Fate::Waits => continue,
            Fate::Silent => (None, &[][..]),
            Fate::Sent(outcome, told) => (Some(outcome), told.as_slice()),
        };
        let to = Phone::new(380_501_000_000 + u64::from(row.get())).unwrap().into();
        let intent = Intent {
            lease,
            kind: OperationKind::ViberSms,
            account: Allowance::new("main", None),
            rows: vec![SentRow { row, to, digest: [0; 8], chain: Chain::UNKNOWN }],
            costs: vec!["0.8".parse().unwrap()],
            bounds: None,
            leave_by: None,
        };
        let Permit::Granted { envelope, .. } = ledger.begin(intent).await.unwrap() else { panic!("it may leave") };
        if let Some(outcome) = outcome {
            let settlement = Settlement { run: run.key, envelope, outcomes: vec![outcome.clone()], evidence: None };
            ledger.settle(settlement).await.unwrap();
        }
        let receipt = |(channel, status, error): &(Option<Channel>, Status, Option<String>)| NewReceipt {
            run: run.key,
            row,
            order: None,
            receipt: Receipt {
                channel: channel.map(ReportedChannel::Known),
                error: error.clone(),
                ..Receipt::new(ReceiptSource::Webhook, status.clone())
            },
            opt_out: None,
        };
        ledger.receive(told.iter().map(receipt).collect()).await.unwrap();
    }
    let run = ledger.runs(RunFilter::one(run.key)).await.unwrap().pop().unwrap();
    (ledger, run)
}
