//! Conformance tests of plans and approvals: their retention, and the single use of an approval.

use futures_util::future::join;
use jiff::{SignedDuration, Timestamp};

use super::scene::*;
use crate::{Approval, ApprovalFilter, Plan, PlanRecord, RunFilter, RunProgress};

fn days_ago(days: i64) -> Timestamp {
    let now = Timestamp::from_microsecond(Timestamp::now().as_microsecond()).unwrap();
    now - SignedDuration::from_hours(24 * days)
}

fn plan(digest: &str, at: Timestamp) -> Plan {
    Plan { digest: digest.to_owned(), record: format!("what {digest} is of"), at }
}

fn approval(token: &str, digest: &str) -> Approval {
    let (at, until) = (days_ago(0), days_ago(-1));
    let (token, digest, by) = (token.to_owned(), digest.to_owned(), "olha".to_owned());
    Approval { token, digest, by, up_to: 12, at, until, standing: false }
}

fn digests(plans: &[Plan]) -> Vec<&str> {
    plans.iter().map(|plan| plan.digest.as_str()).collect()
}

pub(super) async fn plan_is_found_by_digest_prefix_for_thirty_days(scene: Scene) {
    let ledger = scene.port();
    for (digest, days) in [("ab01", 29), ("ab02", 1), ("ab03", 31), ("cd04", 0)] {
        ledger.store_record(PlanRecord::Plan(plan(digest, days_ago(days)))).await.unwrap();
    }
    assert_eq!(digests(&ledger.find_plans("ab").await.unwrap()), ["ab02", "ab01"]);
    assert_eq!(digests(&ledger.find_plans("cd04").await.unwrap()), ["cd04"]);
    for unknown in ["ab03", "cd045", "b0", "_", "%"] {
        assert!(ledger.find_plans(unknown).await.unwrap().is_empty(), "{unknown}");
    }
    let again = Plan { record: "again".to_owned(), ..plan("ab01", days_ago(0)) };
    ledger.store_record(PlanRecord::Plan(again.clone())).await.unwrap();
    assert_eq!(ledger.find_plans("ab01").await.unwrap(), [again]);
}

pub(super) async fn approval_is_used_once_by_concurrent_callers(scene: Scene) {
    let ledger = scene.port();
    assert!(ledger.store_record(PlanRecord::Approval(approval("t1", "ab01"))).await.unwrap());
    let (first, second) = join(ledger.use_approval("t1", None), ledger.use_approval("t1", None)).await;
    assert_ne!(first.unwrap(), second.unwrap());
    assert!(!ledger.use_approval("t1", Some(scene.run.key)).await.unwrap());
    assert!(
        !ledger.store_record(PlanRecord::Approval(approval("t1", "ab01"))).await.unwrap(),
        "storing it again changes nothing"
    );
    assert!(!ledger.use_approval("t1", None).await.unwrap());
    assert!(!ledger.use_approval("unknown", None).await.unwrap());
    assert!(ledger.list_approvals(ApprovalFilter::Run(scene.run.key)).await.unwrap().is_empty());
    assert!(ledger.store_record(PlanRecord::Approval(approval("t2", "ab01"))).await.unwrap());
    let approvals = ledger.list_approvals(ApprovalFilter::Digest("ab01")).await.unwrap();
    assert_eq!(approvals.iter().map(|stored| &stored.approval.token).collect::<Vec<_>>(), ["t1", "t2"]);
    assert_eq!(approvals.iter().map(|stored| stored.is_valid(days_ago(0))).collect::<Vec<_>>(), [false, true]);
    assert_eq!(approvals[1].approval.up_to, 12);
    assert!(
        ledger.list_approvals(ApprovalFilter::Digest("ab")).await.unwrap().is_empty(),
        "prefixes of a digest do not match"
    );
}

pub(super) async fn standing_approval_is_reusable_until_it_expires(scene: Scene) {
    let ledger = scene.port();
    for (token, until) in [("expired", days_ago(1)), ("active", days_ago(-1))] {
        let standing = Approval { until, standing: true, ..approval(token, "ab01") };
        ledger.store_record(PlanRecord::Approval(standing)).await.unwrap();
    }
    assert!(!ledger.use_approval("expired", None).await.unwrap());
    assert!(ledger.use_approval("active", Some(scene.run.key)).await.unwrap());
    assert!(ledger.use_approval("active", None).await.unwrap());
    let used = ledger.list_approvals(ApprovalFilter::Run(scene.run.key)).await.unwrap();
    assert_eq!(used.iter().map(|stored| &stored.approval.token).collect::<Vec<_>>(), ["active"]);
}

pub(super) async fn run_is_opened_together_with_its_approval(scene: Scene) {
    let ledger = scene.port();
    ledger.store_record(PlanRecord::Approval(approval("t1", "ab01"))).await.unwrap();
    let (first, second) = (
        ledger.create_run(&new_run(2), None).await.unwrap().expect("a run"),
        ledger.create_run(&new_run(3), None).await.unwrap().expect("a run"),
    );
    assert!(ledger.open_run(first.key, Some(scene.run.key), Some("t1")).await.unwrap());
    assert!(!ledger.open_run(second.key, Some(first.key), Some("t1")).await.unwrap());
    let runs = ledger.list_runs(RunFilter::for_campaign("sale")).await.unwrap();
    let progress: Vec<_> = runs.iter().map(|run| (run.key, run.progress)).collect();
    assert_eq!(progress, [(scene.run.key, RunProgress::Replaced), (first.key, RunProgress::Open)]);
    let used = ledger.list_approvals(ApprovalFilter::Run(first.key)).await.unwrap();
    assert_eq!(used.len(), 1);
    assert_eq!(used[0].used.and_then(|used| used.run), Some(first.key));
}
