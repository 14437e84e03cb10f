//! Test fixtures shared by several crates: an in-memory ledger with a run whose rows have the specified outcomes, and
//! JSON Schema validation.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod json_schema;

pub use json_schema::JsonSchema;

use jiff::Timestamp;
use proptest::prelude::*;

use campaign_core::domain::{
    Chain, Channel, Endpoint, OperationKind, OperationOutcome, Phone, Receipt, ReceiptSource, ReportedChannel, Row,
    Status,
};
use campaign_ledger::memory::{LedgerContents, MemoryLedger};
use campaign_ledger::{
    Allowance, ExcludedRows, Intent, Ledger, NewReceipt, NewRun, Permit, ReceiptStore as _, RowState, Run, RunFilter,
    SentRow, Settlement, SuppressionPolicy,
};

/// The outcome of a row.
#[derive(Clone, Debug)]
pub enum RowCase {
    /// The row is skipped for this reason.
    Skipped(String),
    /// The row is not sent yet.
    Planned,
    /// The row's request has no answer.
    Unanswered,
    /// The row has this outcome, followed by these receipts. Each receipt has a channel, a status and an error.
    Sent(OperationOutcome, Vec<(Option<Channel>, Status, Option<String>)>),
}

/// Generates an arbitrary row case whose texts come from `words`.
pub fn row_case(words: impl Strategy<Value = String> + Clone + 'static) -> impl Strategy<Value = RowCase> {
    let outcome = prop_oneof![
        4 => (0..3_u32).prop_map(|parts| OperationOutcome::Accepted { msg_id: None, parts: Some(parts), answer: None }),
        1 => words.clone().prop_map(|error| OperationOutcome::Rejected { error }),
        1 => words.clone().prop_map(|reason| OperationOutcome::InDoubt { reason: reason.into() }),
    ];
    let channel = prop_oneof![Just(None), Just(Some(Channel::Viber)), Just(Some(Channel::Sms))];
    let status = proptest::sample::select(Status::KNOWN_STATUSES.to_vec());
    let receipt = (channel, status, proptest::option::of(words.clone()));
    prop_oneof![
        1 => words.prop_map(RowCase::Skipped),
        1 => Just(RowCase::Planned),
        1 => Just(RowCase::Unanswered),
        6 => (outcome, proptest::collection::vec(receipt, 0..4)).prop_map(|(outcome, receipts)| RowCase::Sent(outcome, receipts)),
    ]
}

/// Builds a live run of the campaign `sale` with this number of recipients and this last row.
pub fn new_run(kind: OperationKind, recipients: u64, last_row: Row) -> NewRun {
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
        excluded: ExcludedRows::default(),
        suppression: SuppressionPolicy::default(),
        began_at: Timestamp::UNIX_EPOCH,
        random: 1,
        file: None,
    }
}

/// Builds a ledger with a run of these rows, and returns both. Each row that is neither skipped nor planned has its own
/// request.
pub async fn build_run(cases: &[RowCase]) -> (MemoryLedger, Run) {
    let ledger = MemoryLedger::new(LedgerContents::default(), || Timestamp::UNIX_EPOCH);
    let rows = || (Row::FIRST.get()..).map(Row::new).zip(cases);
    let mut excluded = ExcludedRows::default();
    for (row, case) in rows() {
        if let RowCase::Skipped(reason) = case {
            excluded.insert(row, RowState::Skipped, reason);
        }
    }
    let last = rows().last().map_or(Row::FIRST, |(row, _)| row);
    let new = NewRun { excluded, ..new_run(OperationKind::ViberSms, cases.len() as u64, last) };
    let run = ledger.create_run(&new, None).await.unwrap().expect("a run");
    ledger.open_run(run.key, None, None).await.unwrap();
    let lock = ledger.acquire_campaign_lock("sale", "main").await.unwrap().unwrap();
    let lease = ledger.claim_run(&lock, run.key).await.unwrap().lease;
    for (row, case) in rows() {
        let (outcome, receipts) = match case {
            RowCase::Skipped(_) | RowCase::Planned => continue,
            RowCase::Unanswered => (None, &[][..]),
            RowCase::Sent(outcome, receipts) => (Some(outcome), receipts.as_slice()),
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
        let Permit::Granted { envelope, .. } = ledger.begin_envelope(intent).await.unwrap() else {
            panic!("the ledger did not permit the request")
        };
        if let Some(outcome) = outcome {
            let settlement = Settlement {
                opt_outs: Vec::new(),
                run: run.key,
                envelope,
                outcomes: vec![outcome.clone()],
                evidence: None,
            };
            ledger.settle_envelope(settlement).await.unwrap();
        }
        let new_receipt = |(channel, status, error): &(Option<Channel>, Status, Option<String>)| NewReceipt {
            run: run.key,
            row,
            order: None,
            receipt: Receipt {
                channel: channel.map(ReportedChannel::Known),
                error: error.clone(),
                ..Receipt::new(ReceiptSource::Webhook, status.clone())
            },
            opt_out: None,
            opt_in: None,
        };
        ledger.store_receipts(receipts.iter().map(new_receipt).collect()).await.unwrap();
    }
    let dyn_ledger: &dyn Ledger = &ledger;
    let run = dyn_ledger.list_runs(RunFilter::with_key(run.key)).await.unwrap().pop().unwrap();
    (ledger, run)
}
