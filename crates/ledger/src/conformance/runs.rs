//! Conformance tests of runs: creation, opening, replacement, claims and ends.

use std::time::Duration;

use jiff::Timestamp;

use super::scene::*;
use crate::{
    HostChange, LedgerError, MessageOrigin, NewRun, Permit, PlanRecord, RetriedRow, RetryOrder, RowState, RowUpdate,
    RunEnd, RunFilter, RunProgress, RunUpdate, StateCounts, StopKind, StopRequest, StoredApprovalRule,
    SuppressionPolicy,
};
use campaign_core::domain::{Endpoint, IdRange, LOOPBACK, MessageId, OperationKind, Row};

pub(super) async fn stop_request_outlives_a_claim_until_withdrawn(scene: Scene) {
    scene.ledger.update_runs(vec![scene.run.key], RunUpdate::Stop(StopRequest::Stop)).await.unwrap();
    let lease = scene.claim_again().await;
    assert!(scene.ledger.is_stop_requested(scene.run.key).await.unwrap());
    assert_eq!(scene.begin_envelope(1, lease).await, Permit::StopRequested);
    scene.ledger.update_runs(vec![scene.run.key], RunUpdate::Stop(StopRequest::Withdraw)).await.unwrap();
    assert_eq!(scene.begin_envelope(1, lease).await, granted(1));
}

pub(super) async fn runs_are_numbered_and_their_identifiers_never_overlap(scene: Scene) {
    let mut ranges = vec![scene.run.ids];
    for number in 2..=20 {
        // Every run has the same random number, so the ledger has to find other ranges.
        let run = scene.ledger.create_run(&new_run(1), None).await.unwrap().expect("a run");
        assert_eq!(run.name(), format!("sale@{number}"));
        assert!(ranges.iter().all(|range| !range.overlaps(run.ids)), "{ranges:?} {:?}", run.ids);
        ranges.push(run.ids);
    }
    assert_eq!(scene.port().list_runs(RunFilter::all()).await.unwrap().len(), 1, "an unopened run is not listed");
}

pub(super) async fn run_reads_back_as_written(scene: Scene) {
    let mut counts = StateCounts::default();
    counts.add(RowState::Accepted, 9);
    counts.add(RowState::Invalid, 1);
    let end = RunEnd { counts: counts.clone(), ..run_end() };
    scene.ledger.end_run(scene.forged_lease(), end.clone()).await.unwrap();
    assert_eq!(
        scene.port().list_runs(RunFilter::all()).await.unwrap()[0].progress,
        RunProgress::Open,
        "only the lease holder ends a run"
    );
    scene.ledger.end_run(scene.lease, end).await.unwrap();
    let run = &scene.port().list_runs(RunFilter::all()).await.unwrap()[0];
    assert_eq!(
        (run.progress, run.stop, run.epoch, &run.counts),
        (RunProgress::Finished, Some(StopKind::Interrupted(15)), None, &Some((counts, 12)))
    );
    assert_eq!((run.endpoint, run.kind), (Endpoint::Async, OperationKind::ViberSms));
    assert_eq!(scene.ledger.load_excluded_rows(run.key).await.unwrap().iter_by_row().count(), 1);
}

pub(super) async fn run_follows_its_campaign_file_to_a_new_path(scene: Scene) {
    let next = scene.ledger.create_run(&new_run(2), None).await.unwrap().expect("a run");
    scene.ledger.open_run(next.key, None, None).await.unwrap();
    scene
        .ledger
        .update_runs(vec![scene.run.key], RunUpdate::CampaignFile("/elsewhere/sale.yaml".into()))
        .await
        .unwrap();
    let files = scene.port().list_runs(RunFilter::all()).await.unwrap().into_iter().map(|run| run.file.unwrap());
    assert_eq!(files.collect::<Vec<_>>(), ["/elsewhere/sale.yaml", "/campaigns/sale.yaml"]);
}

pub(super) async fn profile_keeps_its_first_host_until_another_is_trusted(scene: Scene) {
    assert_eq!(scene.ledger.remember_host("main", "a.example", HostChange::IfUnknown).await.unwrap(), "a.example");
    assert_eq!(scene.ledger.remember_host("main", "b.example", HostChange::IfUnknown).await.unwrap(), "a.example");
    scene.ledger.remember_host("main", "b.example", HostChange::Replace).await.unwrap();
    assert_eq!(scene.ledger.remember_host("main", "b.example", HostChange::IfUnknown).await.unwrap(), "b.example");
}

pub(super) async fn profile_keeps_loopback_from_its_first_run(scene: Scene) {
    let remember = async |host: &str| scene.ledger.remember_host("local", host, HostChange::IfUnknown).await.unwrap();
    assert_eq!(remember(LOOPBACK).await, LOOPBACK);
    let policy = SuppressionPolicy { loopback: true, ..SuppressionPolicy::default() };
    let new = NewRun { gateway: "local".into(), live: true, suppression: policy, ..new_run(2) };
    scene.ledger.create_run(&new, None).await.unwrap().expect("a run");
    assert_eq!(remember("a.example").await, LOOPBACK);
    scene.ledger.remember_host("local", "a.example", HostChange::Replace).await.unwrap();
    scene.ledger.create_run(&NewRun { random: 3, ..new }, None).await.unwrap().expect("a run");
    assert_eq!(remember(LOOPBACK).await, "a.example");
}

pub(super) async fn approval_rules_keep_their_order(scene: Scene) {
    let rule_record = |account: &str, rule: &str| StoredApprovalRule {
        account: account.to_owned(),
        gateway: "main".to_owned(),
        hosts: vec!["a.example".to_owned(), "b.example".to_owned()],
        rule: rule.to_owned(),
        by: "Olha".to_owned(),
        at: Timestamp::UNIX_EPOCH,
    };
    let rules = [rule_record("a", "1"), rule_record("b", "2"), rule_record("a", "3")];
    for rule in &rules {
        scene.ledger.store_record(PlanRecord::Rule(rule.clone())).await.unwrap();
    }
    let stored = scene.port().list_approval_rules().await.unwrap();
    // The tables of early versions cannot store rules.
    assert!(stored.is_empty() || stored == rules, "{stored:?}");
}

pub(super) async fn replacement_run_ends_the_replaced_run(scene: Scene) {
    let next = scene.ledger.create_run(&new_run(2), None).await.unwrap().expect("a run");
    assert_eq!(scene.reload_run().await.progress, RunProgress::Open, "until the next one is open");
    scene.ledger.open_run(next.key, Some(scene.run.key), None).await.unwrap();
    let replaced = scene.reload_run().await;
    assert_eq!((replaced.progress, replaced.epoch, replaced.ended_at.is_some()), (RunProgress::Replaced, None, true));
    assert_eq!(scene.begin_envelope(1, scene.lease).await, Permit::Lost);
    scene.ledger.update_runs(vec![next.key], RunUpdate::Retired).await.unwrap();
    let runs = scene.port().list_runs(RunFilter::all()).await.unwrap();
    assert!(runs.iter().all(|run| run.progress == RunProgress::Replaced) && runs.len() == 2);
}

pub(super) async fn claim_clears_the_previous_end_of_a_run(scene: Scene) {
    let end = RunEnd { lag: Some(Duration::from_secs(7)), ..run_end() };
    scene.ledger.end_run(scene.lease, end).await.unwrap();
    let lease = scene.claim_again().await;
    let run = scene.reload_run().await;
    assert_eq!((run.stop, run.stop_reason, run.counts, run.ended_at), (None, None, None, None));
    assert_eq!(
        (run.epoch, run.lag, run.results.as_deref()),
        (Some(lease.epoch), Some(Duration::from_secs(7)), Some("results.csv"))
    );
    scene.ledger.end_run(lease, run_end()).await.unwrap();
    assert_eq!(scene.reload_run().await.lag, Some(Duration::from_secs(7)), "an observed delay is kept");
}

pub(super) async fn message_identifier_leads_to_its_run_and_row(scene: Scene) {
    let other = scene.ledger.create_run(&new_run(2), None).await.unwrap().expect("a run");
    let find = async |id: Option<MessageId>| scene.port().find_message(id.unwrap()).await.unwrap();
    assert_eq!(find(other.ids.id_for_row(Row::new(2))).await, None, "an unopened run is not found");
    scene.ledger.open_run(other.key, None, None).await.unwrap();
    let order = RetryOrder { rows: vec![RetriedRow { row: Row::new(3), envelope: 1 }], by: author(), random: 5 };
    scene.ledger.update_rows(scene.lease, RowUpdate::Retry(order)).await.unwrap();
    let run = scene.reload_run().await;
    for (id, run, row) in [
        (run.ids.id_for_row(Row::new(2)), run.key, 2),
        (run.ids.id_for_row(Row::new(11)), run.key, 11),
        (run.message_id(Row::new(3), Some(1)), run.key, 3),
        (other.ids.id_for_row(Row::new(4)), other.key, 4),
    ] {
        assert_eq!(find(id).await, Some(MessageOrigin { run, row: Row::new(row) }));
    }
    for id in [run.ids.id_for_row(Row::HEADER), run.ids.id_for_row(Row::new(12)), MessageId::new(7)] {
        assert_eq!(find(id).await, None, "{id:?} belongs to no message");
    }
}

pub(super) async fn campaign_lock_has_one_owner_until_it_is_dropped(scene: Scene) {
    let is_held = async || scene.ledger.find_campaign_lock("other", "main/1").await.unwrap().is_some();
    let acquire = async |account| scene.ledger.acquire_campaign_lock("other", account).await.unwrap();
    assert!(!is_held().await);
    let lock = acquire("main/1").await;
    assert!(lock.is_some() && is_held().await && acquire("main/1").await.is_none());
    assert!(acquire("sandbox").await.is_some(), "another account has a separate lock");
    drop(lock);
    assert!(!is_held().await && acquire("main/1").await.is_some());
}

pub(super) async fn run_cannot_be_claimed_without_its_campaign_lock(scene: Scene) {
    for (campaign, account) in [("other", "account"), ("sale", "other")] {
        let lock =
            scene.ledger.acquire_campaign_lock(campaign, account).await.unwrap().expect("the campaign is not locked");
        let refusal = scene.ledger.claim_run(&lock, scene.run.key).await;
        assert!(matches!(refusal, Err(LedgerError::CampaignNotLocked { .. })), "{refusal:?}");
    }
    assert_eq!(scene.begin_envelope(1, scene.lease).await, granted(1), "nothing was taken");
}

pub(super) async fn runs_are_filtered_and_listed_oldest_first(scene: Scene) {
    let (ledger, first) = (scene.port(), scene.run.key);
    let sent = RunEnd { progress: RunProgress::Finished, results: Some("here.csv".into()), ..run_end() };
    ledger.end_run(scene.lease, sent).await.unwrap();
    let mut others = Vec::new();
    for new in [NewRun { live: false, ..new_run(2) }, NewRun { campaign: "other".into(), ..new_run(3) }] {
        let run = ledger.create_run(&new, None).await.unwrap().expect("a run");
        ledger.open_run(run.key, None, None).await.unwrap();
        others.push(run);
    }
    let [rehearsal, other] = others.as_slice() else { panic!("two runs") };
    let (ids, all) = (IdRange { len: 1, ..other.ids }, RunFilter::all);
    let sale = || RunFilter::for_campaign("sale");
    for (filter, expected) in [
        (all(), vec![first, rehearsal.key, other.key]),
        (RunFilter { latest: Some(2), ..all() }, vec![rehearsal.key, other.key]),
        (sale(), vec![first, rehearsal.key]),
        (RunFilter { live: true, latest: Some(1), ..sale() }, vec![first]),
        (RunFilter { open: true, ..sale() }, vec![rehearsal.key]),
        (RunFilter { results: Some("here.csv".into()), ..all() }, vec![first]),
        (RunFilter { ids: Some(ids), ..all() }, vec![other.key]),
        (RunFilter::with_key(rehearsal.key), vec![rehearsal.key]),
        (RunFilter::for_campaign("nobody's"), vec![]),
    ] {
        let runs = ledger.list_runs(filter.clone()).await.unwrap();
        assert_eq!(runs.iter().map(|run| run.key).collect::<Vec<_>>(), expected, "{filter:?}");
    }
    let lease = scene.claim_again().await;
    let order = RetryOrder { rows: vec![RetriedRow { row: Row::new(3), envelope: 1 }], by: author(), random: 5 };
    ledger.update_rows(lease, RowUpdate::Retry(order)).await.unwrap();
    let order_ids = Some(scene.reload_run().await.orders[0]);
    let runs = ledger.list_runs(RunFilter { ids: order_ids, ..all() }).await.unwrap();
    assert_eq!(runs.iter().map(|run| run.key).collect::<Vec<_>>(), [first], "by the identifiers of an order");
}
