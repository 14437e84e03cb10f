//! Plans and approvals: what is kept how long, and that one approval is good for one use.

use futures_util::future::join;
use jiff::{SignedDuration, Timestamp};

use super::scene::*;
use crate::ledger::{Approval, Ledger, Plan, Progress, RunFilter};

fn ago(days: i64) -> Timestamp {
    let now = Timestamp::from_microsecond(Timestamp::now().as_microsecond()).unwrap();
    now - SignedDuration::from_hours(24 * days)
}

fn plan(digest: &str, at: Timestamp) -> Plan {
    Plan { digest: digest.to_owned(), record: format!("what {digest} is of"), at }
}

fn approval(token: &str, digest: &str) -> Approval {
    let (at, until) = (ago(0), ago(-1));
    let (token, digest, by) = (token.to_owned(), digest.to_owned(), "olha".to_owned());
    Approval { token, digest, by, up_to: 12, at, until, standing: false }
}

fn digests(plans: &[Plan]) -> Vec<&str> {
    plans.iter().map(|plan| plan.digest.as_str()).collect()
}

pub(super) async fn a_plan_is_found_by_the_beginning_of_its_digest_for_thirty_days<L: Ledger>(scene: Scene<L>) {
    let ledger = &scene.ledger;
    for (digest, days) in [("ab01", 29), ("ab02", 1), ("ab03", 31), ("cd04", 0)] {
        ledger.keep_plan(plan(digest, ago(days))).await.unwrap();
    }
    assert_eq!(digests(&ledger.plans("ab").await.unwrap()), ["ab02", "ab01"]);
    assert_eq!(digests(&ledger.plans("cd04").await.unwrap()), ["cd04"]);
    for none in ["ab03", "cd045", "b0", "_", "%"] {
        assert!(ledger.plans(none).await.unwrap().is_empty(), "{none}");
    }
    let again = Plan { record: "again".to_owned(), ..plan("ab01", ago(0)) };
    ledger.keep_plan(again.clone()).await.unwrap();
    assert_eq!(ledger.plans("ab01").await.unwrap(), [again]);
}

pub(super) async fn one_approval_is_good_for_one_use_whoever_comes_together<L: Ledger>(scene: Scene<L>) {
    let ledger = &scene.ledger;
    assert!(ledger.approve(approval("t1", "ab01")).await.unwrap());
    let (one, other) = join(ledger.use_approval("t1", None), ledger.use_approval("t1", None)).await;
    assert_ne!(one.unwrap(), other.unwrap());
    assert!(!ledger.use_approval("t1", Some(scene.run.key)).await.unwrap());
    assert!(!ledger.approve(approval("t1", "ab01")).await.unwrap(), "brought again it is the same one");
    assert!(!ledger.use_approval("t1", None).await.unwrap());
    assert!(!ledger.use_approval("unknown", None).await.unwrap());
    assert!(ledger.approvals_of(scene.run.key).await.unwrap().is_empty());
    assert!(ledger.approve(approval("t2", "ab01")).await.unwrap());
    let kept = ledger.approvals("ab01").await.unwrap();
    assert_eq!(kept.iter().map(|kept| &kept.approval.token).collect::<Vec<_>>(), ["t1", "t2"]);
    assert_eq!(kept.iter().map(|kept| kept.is_good(ago(0))).collect::<Vec<_>>(), [false, true]);
    assert_eq!(kept[1].approval.up_to, 12);
    assert!(ledger.approvals("ab").await.unwrap().is_empty(), "a digest is meant, not its beginning");
}

pub(super) async fn an_approval_is_good_until_its_time_and_a_standing_one_as_often_as_wanted<L: Ledger>(
    scene: Scene<L>,
) {
    let ledger = &scene.ledger;
    for (token, until) in [("over", ago(1)), ("on", ago(-1))] {
        let standing = Approval { until, standing: true, ..approval(token, "ab01") };
        ledger.approve(standing).await.unwrap();
    }
    assert!(!ledger.use_approval("over", None).await.unwrap());
    assert!(ledger.use_approval("on", Some(scene.run.key)).await.unwrap());
    assert!(ledger.use_approval("on", None).await.unwrap());
    let used = ledger.approvals_of(scene.run.key).await.unwrap();
    assert_eq!(used.iter().map(|kept| &kept.approval.token).collect::<Vec<_>>(), ["on"]);
}

pub(super) async fn a_run_is_opened_with_its_approval_or_not_at_all<L: Ledger>(scene: Scene<L>) {
    let ledger = &scene.ledger;
    ledger.approve(approval("t1", "ab01")).await.unwrap();
    let (first, second) =
        (ledger.create_run(&new_run(2)).await.unwrap(), ledger.create_run(&new_run(3)).await.unwrap());
    assert!(ledger.open_approved(first.key, Some(scene.run.key), "t1").await.unwrap());
    assert!(!ledger.open_approved(second.key, Some(first.key), "t1").await.unwrap());
    let runs = ledger.runs(RunFilter::of_campaign("sale")).await.unwrap();
    let standing: Vec<_> = runs.iter().map(|run| (run.key, run.progress)).collect();
    assert_eq!(standing, [(scene.run.key, Progress::Replaced), (first.key, Progress::Open)]);
    let used = ledger.approvals_of(first.key).await.unwrap();
    assert_eq!(used.len(), 1);
    assert_eq!(used[0].used.and_then(|used| used.run), Some(first.key));
}
