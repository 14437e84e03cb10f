//! Conformance tests of blocks: processes draw different rows of a shared run, and a process that ends leaves only its
//! own block in doubt.

use super::scene::*;
use crate::{
    AdditionMode, BlockRequest, DrawOutcome, DrawRefusal, EnvelopeFilter, Lease, MessageOrigin, OptOut, OptOutReach,
    OptOutScope, Ownership, Permit, RowBlock, RowSpan, RowState, RowUpdate, RunFilter, RunProgress, Settlement,
    SharedRun, SuppressionPolicy,
};
use campaign_core::domain::{IdRange, MessageId, OperationOutcome, Purpose, Row};

fn rows(first: u32, last: u32) -> RowSpan {
    RowSpan { first: Row::new(first), last: Row::new(last) }
}

impl Scene {
    async fn draw_block(&self, rows: u32) -> RowBlock {
        self.draw_from(&shared_run(), BlockRequest::for_rows(rows)).await.into_block().expect("a block")
    }

    async fn draw_from(&self, shared: &SharedRun, request: BlockRequest) -> DrawOutcome {
        self.ledger.draw_block(shared, request).await.unwrap()
    }

    /// Begins an envelope of one row.
    async fn begin_row(&self, lease: Lease, row: u32) -> Permit {
        self.ledger.begin_envelope(single_intent(lease, row)).await.unwrap()
    }

    /// The outcome state of each envelope of a block's run. `None` for an envelope without an answer.
    async fn block_outcome_states(&self, block: &RowBlock) -> Vec<Option<RowState>> {
        let records = self.ledger.load_envelopes(block.run.key, EnvelopeFilter::Numbers(1..=100)).await.unwrap();
        let outcome = |settled: &Option<(jiff::Timestamp, Vec<OperationOutcome>)>| {
            settled.as_ref().map(|(_, outcomes)| RowState::from_outcome(&outcomes[0]))
        };
        records.iter().map(|record| outcome(&record.settled)).collect()
    }
}

pub(super) async fn processes_never_draw_the_same_row_of_a_shared_run(scene: Scene) {
    let (first, second) = (scene.draw_block(3).await, scene.draw_block(1).await);
    assert_eq!(first.run.key, second.run.key);
    assert_eq!((first.lease.rows, second.lease.rows), (rows(2, 4), rows(5, 5)));
    drop(first);
    let (run, third) = (second.run.key, scene.draw_block(2).await);
    assert_eq!((third.run.key, third.lease.rows), (run, rows(6, 7)), "rows of an ended process are not drawn again");
    // The same place is used again after a block was drawn through another profile of the account.
    drop(second);
    let other = SharedRun { gateway: "other".into(), ..shared_run() };
    let elsewhere = scene.draw_from(&other, BlockRequest::for_rows(1)).await.into_block().expect("a block");
    assert_ne!(elsewhere.run.key, run);
    drop((elsewhere, third));
    assert_eq!(scene.draw_block(1).await.lease.rows, rows(8, 8));
}

pub(super) async fn block_identifiers_are_unique_and_lead_back_to_their_rows(scene: Scene) {
    let blocks = [scene.draw_block(3).await, scene.draw_block(1).await, scene.draw_block(2).await];
    let run = scene.port().list_runs(RunFilter::for_campaign("gateway.test")).await.unwrap().remove(0);
    let mut ids = std::collections::BTreeSet::new();
    for block in &blocks {
        for row in (block.lease.rows.first.get()..=block.lease.rows.last.get()).map(Row::new) {
            let id = run.message_id(row, None).expect("an identifier");
            assert_eq!(block.run.message_id(row, None), Some(id), "the caller knows the identifier");
            assert!(ids.insert(id), "an identifier was used twice");
            assert_eq!(scene.port().find_message(id).await.unwrap(), Some(MessageOrigin { run: run.key, row }));
            let filter = RunFilter { ids: Some(IdRange { first: id.get(), len: 1 }), ..RunFilter::all() };
            assert_eq!(scene.port().list_runs(filter).await.unwrap().len(), 1);
        }
    }
    assert_eq!((ids.len(), run.message_id(Row::new(8), None), run.message_id(Row::HEADER, None)), (6, None, None));
    // A restored ledger would assign the run's own range again, so no identifier comes from that range.
    assert!(ids.iter().all(|id| run.ids.row_for_id(*id).is_none()));
}

pub(super) async fn shared_run_is_listed_as_finished_and_claims_end_on_drop(scene: Scene) {
    let block = scene.draw_block(2).await;
    let listed = scene.port().list_runs(RunFilter::for_campaign("gateway.test")).await.unwrap();
    let [run] = listed.as_slice() else { panic!("one run") };
    assert_eq!(
        (run.key, run.shared, run.progress, run.name()),
        (block.run.key, true, RunProgress::Finished, "gateway.test@1".into())
    );
    assert!(!scene.run.shared);
    let claimed_rows = async || scene.port().load_claimed_rows(run.key).await.unwrap().iter().collect::<Vec<_>>();
    assert_eq!(claimed_rows().await, [2, 3]);
    let another = scene.draw_block(1).await;
    drop(block);
    assert_eq!(claimed_rows().await, [4]);
    drop(another);
    assert!(claimed_rows().await.is_empty());
}

pub(super) async fn full_shared_run_is_followed_by_a_new_one(scene: Scene) {
    let rest_of_run = scene.draw_block(SharedRun::ROWS - 1).await;
    let last = scene.draw_block(5).await;
    assert_eq!(
        (last.run.key, last.lease.rows.first),
        (rest_of_run.run.key, last.lease.rows.last),
        "the remaining rows"
    );
    assert_eq!(last.lease.rows.last, rest_of_run.run.last_row());
    let next = scene.draw_block(5).await;
    assert_eq!((next.run.name(), next.lease.rows), ("gateway.test@2".to_owned(), rows(2, 6)));
    let ids = |block: &RowBlock| {
        (block.run.message_id(block.lease.rows.first, None), block.run.message_id(block.lease.rows.last, None))
    };
    assert!(ids(&next).0.is_some() && ids(&next) != ids(&rest_of_run) && ids(&next) != ids(&last));
    drop((rest_of_run, last));
    // The earlier places are free again, but their blocks belong to the full run, so the next block comes from the
    // second run.
    assert_eq!(scene.draw_block(1).await.lease.rows, rows(7, 7));
}

pub(super) async fn ended_process_leaves_only_its_block_in_doubt(scene: Scene) {
    let (first, second) = (scene.draw_block(2).await, scene.draw_block(2).await);
    for (block, row, envelope) in [(&first, 2, 1), (&second, 4, 2), (&first, 3, 3)] {
        assert_eq!(scene.begin_row(block.lease, row).await, granted(envelope));
    }
    let settled = Settlement {
        opt_outs: Vec::new(),
        run: first.run.key,
        envelope: 3,
        outcomes: vec![accepted()],
        evidence: None,
    };
    scene.ledger.settle_envelope(settled).await.unwrap();
    let old_lease = first.lease;
    drop(first);
    // The next process at this place finds the open intents of the ended process.
    let third = scene.draw_block(1).await;
    assert_eq!(scene.block_outcome_states(&second).await, [Some(RowState::InDoubt), None, Some(RowState::Accepted)]);
    assert_eq!(scene.begin_row(old_lease, 2).await, Permit::Lost);
    assert_eq!(scene.begin_row(second.lease, 5).await, granted(4));
    assert_eq!(scene.begin_row(third.lease, 6).await, granted(5));
}

pub(super) async fn envelope_outside_its_block_is_refused(scene: Scene) {
    let (first, second) = (scene.draw_block(2).await, scene.draw_block(2).await);
    assert_eq!(scene.begin_row(first.lease, 4).await, Permit::Lost);
    assert_eq!(scene.begin_row(Lease { rows: second.lease.rows, ..first.lease }, 4).await, Permit::Lost);
    assert_eq!(scene.begin_row(Lease { epoch: scene.lease.epoch, ..second.lease }, 4).await, Permit::Lost);
    assert_eq!(scene.begin_row(second.lease, 4).await, granted(1));
}

pub(super) async fn claim_of_a_shared_run_keeps_blocks_in_use(scene: Scene) {
    let (living, ended) = (scene.draw_block(1).await, scene.draw_block(1).await);
    scene.begin_row(living.lease, 2).await;
    scene.begin_row(ended.lease, 3).await;
    let (run, lost) = (ended.run.clone(), ended.lease);
    drop(ended);
    let lock = scene
        .ledger
        .acquire_campaign_lock(&run.campaign, &run.account)
        .await
        .unwrap()
        .expect("blocks are independent of the claim");
    let claim = scene.ledger.claim_run(&lock, run.key).await.unwrap();
    assert_eq!(claim.in_doubt, 1);
    assert_eq!(scene.block_outcome_states(&living).await, [None, Some(RowState::InDoubt)]);
    scene.record_events(claim.lease, vec![event(3, 2, not_sent_after_all())]).await;
    scene.ledger.end_run(claim.lease, run_end()).await.unwrap();
    let current_run = scene.port().list_runs(RunFilter::with_key(run.key)).await.unwrap().remove(0);
    assert_eq!(
        (current_run.counts, current_run.ended_at, current_run.epoch),
        (None, None, None),
        "other processes continue the run"
    );
    let settled =
        Settlement { opt_outs: Vec::new(), run: run.key, envelope: 1, outcomes: vec![accepted()], evidence: None };
    scene.ledger.settle_envelope(settled).await.unwrap();
    assert_eq!(scene.block_outcome_states(&living).await, [Some(RowState::Accepted), Some(RowState::InDoubt)]);
    assert_eq!(scene.begin_row(lost, 3).await, Permit::Lost, "the claim ended the lease of the ended process");
}

pub(super) async fn shared_runs_differ_by_edition(scene: Scene) {
    let shared_run_of = |day: &str| SharedRun { edition: day.into(), ..shared_run() };
    let draw = async |day| {
        let block =
            scene.draw_from(&shared_run_of(day), BlockRequest::for_rows(1)).await.into_block().expect("a block");
        (block.run.name(), block.run.edition.clone(), block.lease.rows.first.get())
    };
    assert_eq!(draw("2026-11-22").await, ("gateway.test@1".into(), "2026-11-22".into(), 2));
    assert_eq!(draw("2026-11-23").await, ("gateway.test@2".into(), "2026-11-23".into(), 2));
    assert_eq!(draw("2026-11-22").await, ("gateway.test@1".into(), "2026-11-22".into(), 3), "late");
}

pub(super) async fn given_identifier_is_used_for_one_message(scene: Scene) {
    let request = |number: u64| BlockRequest::for_message(Some(MessageId::new(number).unwrap()), None);
    let block = scene.draw_from(&shared_run(), request(77)).await.into_block().expect("a block");
    let row = block.lease.rows.first;
    assert_eq!((block.run.message_id(row, None), block.lease.rows.last), (MessageId::new(77), row));
    let origin = scene.port().find_message(MessageId::new(77).unwrap()).await.unwrap();
    assert_eq!(origin, Some(MessageOrigin { run: block.run.key, row }));
    assert!(matches!(scene.draw_from(&shared_run(), request(77)).await, DrawOutcome::Refused(DrawRefusal::IdTaken)));
    drop(block);
    assert!(
        matches!(scene.draw_from(&shared_run(), request(77)).await, DrawOutcome::Refused(DrawRefusal::IdTaken)),
        "the identifier of a dropped block"
    );
    let campaign_id = scene.run.ids.first + 3;
    assert!(
        matches!(
            scene.draw_from(&shared_run(), request(campaign_id)).await,
            DrawOutcome::Refused(DrawRefusal::IdTaken)
        ),
        "the identifier of a campaign's message"
    );
    assert!(matches!(scene.draw_from(&shared_run(), request(78)).await, DrawOutcome::Block(_)));
}

pub(super) async fn hourly_limit_bounds_drawn_rows(scene: Scene) {
    let request = BlockRequest::for_message(None, Some(2));
    let began = jiff::Timestamp::now();
    for _ in 0..2 {
        assert!(matches!(scene.draw_from(&shared_run(), request).await, DrawOutcome::Block(_)));
    }
    let tomorrow = SharedRun { edition: "tomorrow".into(), ..shared_run() };
    for shared in [&shared_run(), &tomorrow] {
        let DrawOutcome::Refused(DrawRefusal::TooMany(next)) = scene.draw_from(shared, request).await else {
            panic!("a third block was drawn")
        };
        assert!((3_595..=3_605).contains(&next.duration_since(began).as_secs()), "{next}");
    }
    let with_used_id = BlockRequest::for_message(MessageId::new(scene.run.ids.first), Some(2));
    let refusals = scene.ledger.list_draw_refusals(&shared_run(), with_used_id).await.unwrap();
    assert!(matches!(refusals[..], [DrawRefusal::IdTaken, DrawRefusal::TooMany(_)]), "{refusals:?}");
    let three = BlockRequest::for_message(None, Some(3));
    assert_eq!(scene.ledger.list_draw_refusals(&shared_run(), three).await.unwrap(), [], "the check draws nothing");
    let elsewhere = SharedRun { gateway: "other".into(), ..shared_run() };
    assert!(
        matches!(scene.draw_from(&elsewhere, request).await, DrawOutcome::Block(_)),
        "each profile has a separate limit"
    );
    let uncounted = scene.draw_block(1).await;
    let uncounted = scene.ledger.update_rows(uncounted.lease, RowUpdate::NotCounted).await.unwrap();
    assert_eq!(uncounted, Ownership::Held);
    let counted = BlockRequest::for_message(None, Some(3));
    assert!(matches!(scene.draw_from(&shared_run(), counted).await, DrawOutcome::Block(_)), "two of three count");
    assert!(matches!(scene.draw_from(&shared_run(), counted).await, DrawOutcome::Refused(DrawRefusal::TooMany(_))));
}

pub(super) async fn single_marketing_message_is_refused_after_an_opt_out(scene: Scene) {
    let opted_out = |last, reach| OptOut {
        who: phone(last).into(),
        scope: OptOutScope::Marketing,
        reach,
        reason: "asked".into(),
        source: "test".into(),
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    let listed = vec![opted_out(3, OptOutReach::AllGateways), opted_out(4, OptOutReach::LoopbackGateways)];
    scene.ledger.add_opt_outs(listed.into(), AdditionMode::Add).await.unwrap();
    let marketing = SharedRun {
        suppression: SuppressionPolicy { purpose: Purpose::Marketing, ..SuppressionPolicy::SERVICE },
        ..shared_run()
    };
    let sandbox =
        SharedRun { suppression: SuppressionPolicy { loopback: true, ..marketing.suppression }, ..shared_run() };
    for (shared, expected) in [(&marketing, [3].as_slice()), (&sandbox, &[3, 4]), (&shared_run(), &[])] {
        let block = scene.draw_from(shared, BlockRequest::for_rows(3)).await.into_block().expect("a block");
        let mut refusals = Vec::new();
        for last in [2, 3, 4] {
            // The first row of a run is 2, so this row is `last`, and its number is `phone(last)`.
            match scene.begin_row(block.lease, block.lease.rows.first.get() + last - 2).await {
                Permit::OptedOut(_) => refusals.push(last),
                permit => assert!(matches!(permit, Permit::Granted { .. }), "{permit:?}"),
            }
        }
        assert_eq!(refusals, expected);
    }
}
