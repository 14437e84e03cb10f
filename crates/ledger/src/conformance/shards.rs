//! Conformance tests of shards: parts of a run that several workers send, and their takeover when a worker ends.

use futures_util::future::join_all;

use super::scene::*;
use crate::{
    Intent, Lease, OPTED_OUT, Ownership, Permit, RowSpan, RowState, RowUpdate, RunEnd, RunFilter, RunProgress,
    RunUpdate, Settlement, ShardDraw, ShardHolder, ShardWorker, StopKind, StopRequest,
};
use campaign_core::domain::Row;

fn rows(first: u32, last: u32) -> RowSpan {
    RowSpan { first: Row::new(first), last: Row::new(last) }
}

fn new_rows(first: u32, last: u32) -> ShardDraw {
    ShardDraw::NewRows(rows(first, last))
}

impl Scene {
    /// Shards the run. `proven` says whether the gateway has already accepted a message.
    async fn shard_run(&self, lease: Lease, proven: bool) {
        let ownership =
            self.ledger.update_rows(lease, RowUpdate::Sharded { terms: "terms".into(), proven }).await.unwrap();
        assert_eq!(ownership, Ownership::Held);
    }

    async fn register_worker(&self, by: &str) -> ShardWorker {
        self.ledger.register_worker(&self.reload_run().await, by.into()).await.unwrap().expect("the run is sharded")
    }

    async fn draw_shard(&self, worker: &ShardWorker, rows: u32) -> ShardDraw {
        self.ledger.draw_shard(worker, rows, true).await.unwrap()
    }

    /// Begins an envelope of these rows.
    async fn begin_rows(&self, lease: Lease, rows: &[u32]) -> Permit {
        let sent_rows = rows.iter().flat_map(|row| single_intent(lease, *row).rows);
        let intent = Intent { rows: sent_rows.collect(), ..single_intent(lease, rows[0]) };
        self.ledger.begin_envelope(intent).await.unwrap()
    }

    async fn claimed_rows(&self) -> Vec<u32> {
        self.port().load_claimed_rows(self.run.key).await.unwrap().iter().collect()
    }
}

pub(super) async fn shards_are_drawn_in_order_without_repeating_rows(scene: Scene) {
    assert!(scene.ledger.register_worker(&scene.run, "one".into()).await.unwrap().is_none(), "the run is not sharded");
    scene.shard_run(scene.lease, true).await;
    let (first, second) = (scene.register_worker("one").await, scene.register_worker("two").await);
    assert_eq!(scene.draw_shard(&first, 4).await, new_rows(2, 5));
    assert_eq!(scene.draw_shard(&second, 4).await, new_rows(6, 9));
    assert_eq!(scene.draw_shard(&first, 4).await, new_rows(10, 11), "the remaining rows");
    assert_eq!(scene.draw_shard(&second, 4).await, ShardDraw::Unavailable);
    assert_eq!(scene.claimed_rows().await, (2..=11).collect::<Vec<_>>());
    scene.ledger.update_rows(first.lease, RowUpdate::ShardsFinished).await.unwrap();
    assert_eq!(scene.claimed_rows().await, [6, 7, 8, 9]);
    assert_eq!(scene.draw_shard(&second, 4).await, ShardDraw::Exhausted, "no other worker has rows");
    assert_eq!(scene.draw_shard(&first, 4).await, ShardDraw::Unavailable);
    drop(first);
    scene.ledger.update_rows(second.lease, RowUpdate::ShardsFinished).await.unwrap();
    assert_eq!(scene.draw_shard(&second, 4).await, ShardDraw::Exhausted);
    let origin = scene
        .port()
        .find_message(scene.run.ids.id_for_row(Row::new(7)).unwrap())
        .await
        .unwrap()
        .expect("by the row's identifier");
    assert_eq!((origin.run, origin.row), (scene.run.key, Row::new(7)));
}

pub(super) async fn one_worker_draws_until_the_gateway_accepts_a_message(scene: Scene) {
    scene.shard_run(scene.lease, false).await;
    let (first, second) = (scene.register_worker("one").await, scene.register_worker("two").await);
    assert_eq!(scene.draw_shard(&first, 2).await, new_rows(2, 3));
    assert_eq!(scene.draw_shard(&second, 2).await, ShardDraw::Unavailable);
    assert_eq!(scene.draw_shard(&first, 2).await, new_rows(4, 5), "the first worker continues");
    drop(first);
    assert!(matches!(scene.draw_shard(&second, 2).await, ShardDraw::TakenOver { .. }), "then another worker does");
    let third = scene.register_worker("three").await;
    assert_eq!(scene.draw_shard(&third, 2).await, ShardDraw::Unavailable);
    scene.ledger.update_runs(vec![scene.run.key], RunUpdate::Proven).await.unwrap();
    assert_eq!(scene.draw_shard(&third, 2).await, new_rows(6, 7));
}

pub(super) async fn shards_of_a_lost_worker_are_taken_over(scene: Scene) {
    scene.shard_run(scene.lease, true).await;
    let (first, second) = (scene.register_worker("one").await, scene.register_worker("two").await);
    assert_eq!(scene.draw_shard(&first, 2).await, new_rows(2, 3));
    assert_eq!(scene.draw_shard(&second, 2).await, new_rows(4, 5));
    assert_eq!(scene.draw_shard(&first, 2).await, new_rows(6, 7));
    assert_eq!(scene.begin_rows(first.lease, &[2]).await, granted(1));
    assert_eq!(scene.begin_rows(second.lease, &[4]).await, granted(2));
    assert_eq!(scene.begin_rows(first.lease, &[3]).await, granted(3));
    scene.settle_row(3).await;
    let lost_lease = first.lease;
    drop(first);
    let draw = ShardDraw::TakenOver { rows: vec![rows(2, 3), rows(6, 7)], doubtful: 1 };
    assert_eq!(scene.draw_shard(&second, 2).await, draw);
    assert_eq!(scene.outcome_states(1).await, [RowState::InDoubt]);
    assert!(scene.outcome_states(2).await.is_empty(), "its own shard continues");
    assert_eq!(scene.outcome_states(3).await, [RowState::Accepted]);
    assert_eq!(scene.begin_rows(lost_lease, &[6]).await, Permit::Lost);
    assert_eq!(scene.begin_rows(second.lease, &[6]).await, granted(4));
    assert_eq!(scene.draw_shard(&second, 2).await, new_rows(8, 9));
}

pub(super) async fn worker_at_a_free_place_takes_over_its_shards(scene: Scene) {
    scene.shard_run(scene.lease, true).await;
    let first = scene.register_worker("one").await;
    assert_eq!(scene.draw_shard(&first, 3).await, new_rows(2, 4));
    assert_eq!(scene.begin_rows(first.lease, &[2, 3]).await, granted(1));
    drop(first);
    let second = scene.register_worker("two").await;
    assert_eq!(scene.draw_shard(&second, 3).await, ShardDraw::TakenOver { rows: vec![rows(2, 4)], doubtful: 1 });
    assert_eq!(scene.draw_shard(&second, 3).await, new_rows(5, 7));
}

pub(super) async fn envelope_must_lie_within_one_shard_of_its_worker(scene: Scene) {
    scene.shard_run(scene.lease, true).await;
    assert_eq!(scene.begin_rows(scene.lease, &[2]).await, Permit::Lost, "not with the lease on the whole run");
    let (first, second) = (scene.register_worker("one").await, scene.register_worker("two").await);
    for (worker, expected) in [(&first, new_rows(2, 3)), (&second, new_rows(4, 5)), (&first, new_rows(6, 7))] {
        assert_eq!(scene.draw_shard(worker, 2).await, expected);
    }
    for rows in [[3, 4], [3, 6], [8, 9]] {
        assert_eq!(scene.begin_rows(first.lease, &rows).await, Permit::Lost, "{rows:?}");
    }
    assert_eq!(scene.begin_rows(first.lease, &[6, 7]).await, granted(1));
    let at_once = join_all([[4], [2], [8], [3], [5]].iter().map(|rows| scene.begin_rows(first.lease, rows))).await;
    match at_once.as_slice() {
        [
            Permit::Lost,
            Permit::Granted { envelope: earlier, .. },
            Permit::Lost,
            Permit::Granted { envelope: later, .. },
            Permit::Lost,
        ] => {
            assert!(1 < *earlier && earlier < later, "numbers are unique");
        }
        other => panic!("{other:?}"),
    }
    let events = vec![event(6, 1, not_sent_after_all())];
    assert_eq!(scene.record_events(second.lease, events.clone()).await, Ownership::Lost);
    assert_eq!(scene.record_events(first.lease, events).await, Ownership::Held, "the worker with the row sees it");
    scene.ledger.update_rows(first.lease, RowUpdate::ShardsFinished).await.unwrap();
    assert_eq!(scene.begin_rows(first.lease, &[2]).await, Permit::Lost, "its shards are complete");
}

pub(super) async fn worker_of_an_earlier_sharding_keeps_shards_but_draws_none(scene: Scene) {
    scene.shard_run(scene.lease, true).await;
    let first = scene.register_worker("one").await;
    assert_eq!(scene.draw_shard(&first, 2).await, new_rows(2, 3));
    let next = scene.claim_again().await;
    assert_eq!(scene.draw_shard(&first, 2).await, ShardDraw::Unavailable, "a process claimed the whole run");
    scene.shard_run(next, true).await;
    assert_eq!(scene.draw_shard(&first, 2).await, ShardDraw::Ended);
    assert_eq!(scene.begin_rows(first.lease, &[2]).await, granted(1), "it sends its own rows");
    let second = scene.register_worker("two").await;
    assert_eq!(scene.draw_shard(&second, 2).await, new_rows(4, 5), "no other worker does");
    scene.ledger.update_rows(first.lease, RowUpdate::ShardsFinished).await.unwrap();
    scene.ledger.update_rows(second.lease, RowUpdate::ShardsFinished).await.unwrap();
    scene.shard_run(next, true).await;
    assert_eq!(scene.draw_shard(&second, 2).await, ShardDraw::Ended, "each sharding has a new number");
    assert_eq!(scene.draw_shard(&scene.register_worker("three").await, 2).await, new_rows(2, 3));
}

pub(super) async fn unclaimed_rows_are_drawn_again_after_resharding(scene: Scene) {
    scene.shard_run(scene.lease, true).await;
    let first = scene.register_worker("one").await;
    assert_eq!(scene.draw_shard(&first, 9).await, new_rows(2, 10));
    assert_eq!(scene.begin_rows(first.lease, &[2]).await, granted(1));
    drop(first);
    let next = scene.claim_again().await;
    assert_eq!(scene.outcome_states(1).await, [RowState::InDoubt]);
    scene.shard_run(next, false).await;
    let second = scene.register_worker("two").await;
    assert_eq!(scene.draw_shard(&second, 9).await, new_rows(2, 10));
}

pub(super) async fn halted_run_has_a_reason_and_no_more_shards(scene: Scene) {
    scene.shard_run(scene.lease, true).await;
    let (first, second) = (scene.register_worker("one").await, scene.register_worker("two").await);
    assert_eq!(scene.draw_shard(&first, 2).await, new_rows(2, 3));
    for (kind, reason) in [(StopKind::Breaker, "three in doubt"), (StopKind::Credit, "too late")] {
        scene
            .ledger
            .update_runs(vec![scene.run.key], RunUpdate::Stop(StopRequest::Halt { kind, reason: reason.into() }))
            .await
            .unwrap();
    }
    assert!(scene.ledger.is_stop_requested(scene.run.key).await.unwrap());
    let run = scene.port().list_runs(RunFilter::with_key(scene.run.key)).await.unwrap().remove(0);
    assert_eq!(
        (run.stop, run.stop_reason.as_deref()),
        (Some(StopKind::Breaker), Some("three in doubt")),
        "the first reason stays"
    );
    assert_eq!(scene.draw_shard(&second, 2).await, ShardDraw::Ended);
    assert_eq!(scene.begin_rows(first.lease, &[2]).await, Permit::StopRequested);
    // A worker that did not learn of the stop in time sends nothing after the end of the run.
    scene.ledger.end_run(scene.lease, RunEnd { progress: RunProgress::Open, ..run_end() }).await.unwrap();
    assert_eq!(scene.begin_rows(first.lease, &[2]).await, Permit::Lost);
    assert_eq!(scene.draw_shard(&first, 2).await, ShardDraw::Ended);
}

pub(super) async fn worker_skips_only_rows_of_its_own_shards(scene: Scene) {
    scene.shard_run(scene.lease, true).await;
    let (first, second) = (scene.register_worker("one").await, scene.register_worker("two").await);
    assert_eq!(scene.draw_shard(&first, 2).await, new_rows(2, 3));
    assert_eq!(scene.draw_shard(&second, 2).await, new_rows(4, 5));
    let skip = async |lease: Lease, row: u32| {
        let update = RowUpdate::Skipped { rows: vec![Row::new(row)], reason: OPTED_OUT };
        scene.ledger.update_rows(lease, update).await.unwrap()
    };
    assert_eq!(skip(second.lease, 3).await, Ownership::Lost);
    assert_eq!(skip(first.lease, 3).await, Ownership::Held);
    assert_eq!(scene.excluded_rows().await, [3, 9]);
    scene.ledger.end_run(scene.lease, RunEnd { progress: RunProgress::Open, ..run_end() }).await.unwrap();
    assert_eq!(skip(first.lease, 2).await, Ownership::Lost, "the run has ended");
    assert_eq!(scene.excluded_rows().await, [3, 9]);
}

pub(super) async fn shard_holders_are_listed_while_they_are_alive(scene: Scene) {
    scene.shard_run(scene.lease, true).await;
    // Machine names can contain anything.
    let hostile = "хост'; DELETE FROM blocks; -- \\ \"";
    let (first, second) = (scene.register_worker(hostile).await, scene.register_worker("host two").await);
    for worker in [&first, &second, &first] {
        scene.draw_shard(worker, 2).await;
    }
    let holders = async || {
        let holders = ShardHolder::from_blocks(&scene.ledger.list_owned_blocks(scene.run.key).await.unwrap());
        let mut holders: Vec<_> = holders.into_iter().map(|holder| (holder.name, holder.rows)).collect();
        holders.sort();
        holders
    };
    assert_eq!(holders().await, [("host two".to_owned(), 2), (hostile.to_owned(), 4)]);
    drop(first);
    assert_eq!(holders().await, [("host two".to_owned(), 2)]);
    scene.ledger.update_rows(second.lease, RowUpdate::ShardsFinished).await.unwrap();
    assert!(holders().await.is_empty());
}

impl Scene {
    /// Settles an envelope of one row as accepted.
    async fn settle_row(&self, envelope: u32) {
        let settlement = Settlement {
            opt_outs: Vec::new(),
            run: self.run.key,
            envelope,
            outcomes: vec![accepted()],
            evidence: None,
        };
        self.ledger.settle_envelope(settlement).await.unwrap();
    }
}
