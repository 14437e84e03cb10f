//! Shares: a run that several processes send, each what it drew, and what becomes of it when one of them is gone.

use super::scene::*;
use crate::domain::Row;
use crate::ledger::{
    Intent, Lease, Ledger, Ownership, Permit, Progress, Rows, RunEnd, RunFilter, Seat, Settlement, Share, State,
    StopKind,
};
use futures_util::future::join_all;

fn rows(first: u32, last: u32) -> Rows {
    Rows { first: Row::new(first), last: Row::new(last) }
}

fn fresh(first: u32, last: u32) -> Share {
    Share::Fresh(rows(first, last))
}

impl<L: Ledger> Scene<L> {
    /// Shares the run out, of which the gateway has taken a message already or not.
    async fn share_out(&self, lease: Lease, proven: bool) {
        let shared = self.ledger.share_out(lease, "terms".into(), proven).await.unwrap();
        assert_eq!(shared, Ownership::Held);
    }

    async fn seat(&self, by: &str) -> Seat {
        self.ledger.take_seat(&self.now().await, by.into()).await.unwrap().expect("it is shared out")
    }

    async fn draw_share(&self, seat: &Seat, rows: u32) -> Share {
        self.ledger.draw_share(seat, rows, true).await.unwrap()
    }

    /// Begins an envelope of these rows.
    async fn begin_rows(&self, lease: Lease, rows: &[u32]) -> Permit {
        let intents = rows.iter().flat_map(|row| single_intent(lease, *row).rows);
        let intent = Intent { rows: intents.collect(), ..single_intent(lease, 2) };
        self.ledger.begin(intent).await.unwrap()
    }

    async fn in_hand(&self) -> Vec<u32> {
        self.ledger.rows_in_hand(self.run.key).await.unwrap().iter().collect()
    }
}

pub(super) async fn shares_are_drawn_one_after_another_and_no_row_twice<L: Ledger>(scene: Scene<L>) {
    assert!(scene.ledger.take_seat(&scene.run, "one".into()).await.unwrap().is_none(), "nobody shared it out");
    scene.share_out(scene.mine, true).await;
    let (one, two) = (scene.seat("one").await, scene.seat("two").await);
    assert_eq!(scene.draw_share(&one, 4).await, fresh(2, 5));
    assert_eq!(scene.draw_share(&two, 4).await, fresh(6, 9));
    assert_eq!(scene.draw_share(&one, 4).await, fresh(10, 11), "what is left of it");
    assert_eq!(scene.draw_share(&two, 4).await, Share::InOtherHands);
    assert_eq!(scene.in_hand().await, (2..=11).collect::<Vec<_>>());
    scene.ledger.finish_shares(&one).await.unwrap();
    assert_eq!(scene.in_hand().await, [6, 7, 8, 9]);
    assert_eq!(scene.draw_share(&two, 4).await, Share::Through, "nobody else has any");
    assert_eq!(scene.draw_share(&one, 4).await, Share::InOtherHands);
    drop(one);
    scene.ledger.finish_shares(&two).await.unwrap();
    assert_eq!(scene.draw_share(&two, 4).await, Share::Through);
    let found = scene.ledger.find(scene.run.ids.id(Row::new(7)).unwrap()).await.unwrap().expect("its own identifier");
    assert_eq!((found.run, found.row), (scene.run.key, Row::new(7)));
}

pub(super) async fn until_the_gateway_took_a_message_one_process_alone_draws<L: Ledger>(scene: Scene<L>) {
    scene.share_out(scene.mine, false).await;
    let (one, two) = (scene.seat("one").await, scene.seat("two").await);
    assert_eq!(scene.draw_share(&one, 2).await, fresh(2, 3));
    assert_eq!(scene.draw_share(&two, 2).await, Share::InOtherHands);
    assert_eq!(scene.draw_share(&one, 2).await, fresh(4, 5), "whoever tries the way goes on");
    drop(one);
    assert!(matches!(scene.draw_share(&two, 2).await, Share::TakenOver { .. }), "and another after it");
    let three = scene.seat("three").await;
    assert_eq!(scene.draw_share(&three, 2).await, Share::InOtherHands);
    scene.ledger.prove(scene.run.key).await.unwrap();
    assert_eq!(scene.draw_share(&three, 2).await, fresh(6, 7));
}

pub(super) async fn what_somebody_had_who_is_gone_is_taken_over_with_doubt_about_what_was_begun<L: Ledger>(
    scene: Scene<L>,
) {
    scene.share_out(scene.mine, true).await;
    let (one, two) = (scene.seat("one").await, scene.seat("two").await);
    assert_eq!(scene.draw_share(&one, 2).await, fresh(2, 3));
    assert_eq!(scene.draw_share(&two, 2).await, fresh(4, 5));
    assert_eq!(scene.draw_share(&one, 2).await, fresh(6, 7));
    assert_eq!(scene.begin_rows(one.lease, &[2]).await, granted(1));
    assert_eq!(scene.begin_rows(two.lease, &[4]).await, granted(2));
    assert_eq!(scene.begin_rows(one.lease, &[3]).await, granted(3));
    scene.settle_row(3).await;
    let gone = one.lease;
    drop(one);
    let taken = Share::TakenOver { rows: vec![rows(2, 3), rows(6, 7)], doubtful: 1 };
    assert_eq!(scene.draw_share(&two, 2).await, taken);
    assert_eq!(scene.states(1).await, [State::InDoubt]);
    assert!(scene.states(2).await.is_empty(), "its own goes on");
    assert_eq!(scene.states(3).await, [State::Accepted]);
    assert_eq!(scene.begin_rows(gone, &[6]).await, Permit::Lost);
    assert_eq!(scene.begin_rows(two.lease, &[6]).await, granted(4));
    assert_eq!(scene.draw_share(&two, 2).await, fresh(8, 9));
}

pub(super) async fn who_comes_to_the_place_of_somebody_who_is_gone_takes_over_what_was_drawn_there<L: Ledger>(
    scene: Scene<L>,
) {
    scene.share_out(scene.mine, true).await;
    let one = scene.seat("one").await;
    assert_eq!(scene.draw_share(&one, 3).await, fresh(2, 4));
    assert_eq!(scene.begin_rows(one.lease, &[2, 3]).await, granted(1));
    drop(one);
    let two = scene.seat("two").await;
    assert_eq!(scene.draw_share(&two, 3).await, Share::TakenOver { rows: vec![rows(2, 4)], doubtful: 1 });
    assert_eq!(scene.draw_share(&two, 3).await, fresh(5, 7));
}

pub(super) async fn nobody_begins_what_is_not_of_one_share_of_its_own<L: Ledger>(scene: Scene<L>) {
    scene.share_out(scene.mine, true).await;
    assert_eq!(scene.begin_rows(scene.mine, &[2]).await, Permit::Lost, "nor who has the whole run");
    let (one, two) = (scene.seat("one").await, scene.seat("two").await);
    for (seat, expected) in [(&one, fresh(2, 3)), (&two, fresh(4, 5)), (&one, fresh(6, 7))] {
        assert_eq!(scene.draw_share(seat, 2).await, expected);
    }
    for rows in [[3, 4], [3, 6], [8, 9]] {
        assert_eq!(scene.begin_rows(one.lease, &rows).await, Permit::Lost, "{rows:?}");
    }
    assert_eq!(scene.begin_rows(one.lease, &[6, 7]).await, granted(1));
    let at_once = join_all([[4], [2], [8], [3], [5]].iter().map(|rows| scene.begin_rows(one.lease, rows))).await;
    match at_once.as_slice() {
        [
            Permit::Lost,
            Permit::Granted { envelope: first, .. },
            Permit::Lost,
            Permit::Granted { envelope: next, .. },
            Permit::Lost,
        ] => {
            assert!(1 < *first && first < next, "each has a number of its own");
        }
        other => panic!("{other:?}"),
    }
    let learnt = vec![event(6, 1, not_sent_after_all())];
    assert_eq!(scene.record(two.lease, learnt.clone()).await, Ownership::Lost);
    assert_eq!(scene.record(one.lease, learnt).await, Ownership::Held, "whoever has the row learns of it");
    scene.ledger.finish_shares(&one).await.unwrap();
    assert_eq!(scene.begin_rows(one.lease, &[2]).await, Permit::Lost, "it said that this is through");
}

pub(super) async fn who_knows_an_earlier_sharing_out_draws_nothing_and_keeps_what_it_has<L: Ledger>(scene: Scene<L>) {
    scene.share_out(scene.mine, true).await;
    let one = scene.seat("one").await;
    assert_eq!(scene.draw_share(&one, 2).await, fresh(2, 3));
    let next = scene.take().await;
    assert_eq!(scene.draw_share(&one, 2).await, Share::InOtherHands, "somebody looks at the whole run");
    scene.share_out(next, true).await;
    assert_eq!(scene.draw_share(&one, 2).await, Share::Over);
    assert_eq!(scene.begin_rows(one.lease, &[2]).await, granted(1), "what it has it sends");
    let two = scene.seat("two").await;
    assert_eq!(scene.draw_share(&two, 2).await, fresh(4, 5), "and nobody else does");
    scene.ledger.finish_shares(&one).await.unwrap();
    scene.ledger.finish_shares(&two).await.unwrap();
    scene.share_out(next, true).await;
    assert_eq!(scene.draw_share(&two, 2).await, Share::Over, "whoever shares it out, it is another time");
    assert_eq!(scene.draw_share(&scene.seat("three").await, 2).await, fresh(2, 3));
}

pub(super) async fn what_nobody_has_is_drawn_anew_when_a_run_is_shared_out_again<L: Ledger>(scene: Scene<L>) {
    scene.share_out(scene.mine, true).await;
    let one = scene.seat("one").await;
    assert_eq!(scene.draw_share(&one, 9).await, fresh(2, 10));
    assert_eq!(scene.begin_rows(one.lease, &[2]).await, granted(1));
    drop(one);
    let next = scene.take().await;
    assert_eq!(scene.states(1).await, [State::InDoubt]);
    scene.share_out(next, false).await;
    let two = scene.seat("two").await;
    assert_eq!(scene.draw_share(&two, 9).await, fresh(2, 10));
}

pub(super) async fn who_stops_a_run_tells_everybody_why_and_nothing_more_is_drawn<L: Ledger>(scene: Scene<L>) {
    scene.share_out(scene.mine, true).await;
    let (one, two) = (scene.seat("one").await, scene.seat("two").await);
    assert_eq!(scene.draw_share(&one, 2).await, fresh(2, 3));
    for (kind, reason) in [(StopKind::Breaker, "three in doubt"), (StopKind::Credit, "too late")] {
        scene.ledger.halt(scene.run.key, kind, reason.into()).await.unwrap();
    }
    assert!(scene.ledger.stop_requested(scene.run.key).await.unwrap());
    let run = scene.ledger.runs(RunFilter::one(scene.run.key)).await.unwrap().remove(0);
    assert_eq!(
        (run.stop, run.stopped.as_deref()),
        (Some(StopKind::Breaker), Some("three in doubt")),
        "the first counts"
    );
    assert_eq!(scene.draw_share(&two, 2).await, Share::Over);
    assert_eq!(scene.begin_rows(one.lease, &[2]).await, Permit::StopRequested);
    // Whoever did not hear of it in time sends nothing once it ended.
    scene.ledger.end(scene.mine, RunEnd { progress: Progress::Open, ..run_end() }).await.unwrap();
    assert_eq!(scene.begin_rows(one.lease, &[2]).await, Permit::Lost);
    assert_eq!(scene.draw_share(&one, 2).await, Share::Over);
}

pub(super) async fn who_has_what_of_a_run_is_told_as_long_as_they_are_there<L: Ledger>(scene: Scene<L>) {
    scene.share_out(scene.mine, true).await;
    // A machine is called what its owner likes.
    let hostile = "хост'; DELETE FROM blocks; -- \\ \"";
    let (one, two) = (scene.seat(hostile).await, scene.seat("host two").await);
    for seat in [&one, &two, &one] {
        scene.draw_share(seat, 2).await;
    }
    let holders = async || {
        let holders = scene.ledger.share_holders(&scene.now().await).await.unwrap();
        let mut holders: Vec<_> = holders.into_iter().map(|holder| (holder.by, holder.rows)).collect();
        holders.sort();
        holders
    };
    assert_eq!(holders().await, [("host two".to_owned(), 2), (hostile.to_owned(), 4)]);
    drop(one);
    assert_eq!(holders().await, [("host two".to_owned(), 2)]);
    scene.ledger.finish_shares(&two).await.unwrap();
    assert!(holders().await.is_empty());
}

impl<L: Ledger> Scene<L> {
    /// The gateway takes the message of an envelope of one row.
    async fn settle_row(&self, envelope: u32) {
        let settlement = Settlement { run: self.run.key, envelope, outcomes: vec![accepted()], evidence: None };
        self.ledger.settle(settlement).await.unwrap();
    }
}
