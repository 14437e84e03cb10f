//! Conformance tests of budgets, daily limits and allowed countries.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::scene::{Scene, accepted, event, found, granted, in_doubt, new_run, not_sent, not_sent_after_all, rejected};
use crate::{Allowance, Bound, Bounds, COUNTRY, Intent, NewRun, Permit, RowState, SuppressionPolicy};
use campaign_core::calendar::DailyLimits;
use campaign_core::domain::{Amount, Budget, CountrySet, Phone, Row, Status};

fn parse_amount(text: &str) -> Amount {
    text.parse().unwrap()
}

fn budget_bounds(cost: Option<&str>, recipients: Option<u64>) -> Option<Arc<Bounds>> {
    Some(Arc::new(Bounds { budget: Budget { cost: cost.map(parse_amount), recipients }, ..Bounds::default() }))
}

/// An intent for an envelope of two rows with these costs and bounds.
fn intent_with_bounds(scene: &Scene, envelope: u32, costs: [&str; 2], bounds: Option<Arc<Bounds>>) -> Intent {
    Intent { costs: costs.map(parse_amount).to_vec(), bounds, ..scene.new_intent(envelope, scene.lease) }
}

fn recipients_exceeded(fits: usize, limit: u64) -> Permit {
    Permit::BoundExceeded { fits, bound: Bound::Recipients { limit } }
}

fn cost_exceeded(fits: usize, limit: &str, used: &str) -> Permit {
    Permit::BoundExceeded { fits, bound: Bound::Cost { limit: parse_amount(limit), used: parse_amount(used) } }
}

pub(super) async fn over_budget_intent_is_refused_with_the_number_that_fits(scene: Scene) {
    let (by_recipients, by_cost) = (budget_bounds(None, Some(3)), budget_bounds(Some("5.00"), None));
    let begin =
        |envelope, costs, bounds| scene.ledger.begin_envelope(intent_with_bounds(&scene, envelope, costs, bounds));
    assert_eq!(begin(1, ["0.80", "1.60"], by_recipients.clone()).await.unwrap(), granted(1));
    assert_eq!(begin(2, ["0.80", "0.80"], by_recipients.clone()).await.unwrap(), recipients_exceeded(1, 3));
    assert_eq!(begin(2, ["1.00", "1.61"], by_cost.clone()).await.unwrap(), cost_exceeded(1, "5.00", "3.40"));
    assert_eq!(begin(2, ["2.61", "0.10"], by_cost.clone()).await.unwrap(), cost_exceeded(0, "5.00", "2.40"));
    assert_eq!(scene.ledger.list_envelope_summaries(scene.run.key).await.unwrap().len(), 1, "no intent");
    assert_eq!(begin(2, ["1.00", "1.60"], by_cost.clone()).await.unwrap(), granted(2), "exactly the limit");
    assert_eq!(begin(3, ["0.01", "0"], by_cost).await.unwrap(), cost_exceeded(0, "5.00", "5.00"));
    assert_eq!(begin(3, ["9", "9"], budget_bounds(Some("23"), Some(6))).await.unwrap(), granted(3), "a higher limit");
    assert_eq!(begin(4, ["9", "9"], None).await.unwrap(), granted(4), "without a budget");
}

pub(super) async fn row_outside_the_allowed_countries_is_skipped(scene: Scene) {
    let countries = |codes: &[&str]| {
        let countries = Some(CountrySet::new(codes.iter().map(|code| code.parse().unwrap())));
        Some(Arc::new(Bounds { countries, ..Bounds::default() }))
    };
    let begin = |bounds, to: Option<u64>| {
        let mut intent = Intent { bounds, ..scene.new_intent(1, scene.lease) };
        if let Some(number) = to {
            intent.rows[1].to = Phone::new(number).unwrap().into();
        }
        scene.ledger.begin_envelope(intent)
    };
    let rows = |rows: &[u32]| Permit::OutsideCountries(rows.iter().copied().map(Row::new).collect());
    assert_eq!(begin(countries(&["PL"]), None).await.unwrap(), rows(&[2, 3]));
    assert_eq!(begin(countries(&["PL", "UA"]), Some(4_930_123_456)).await.unwrap(), rows(&[3]), "Germany");
    assert_eq!(begin(countries(&["UA"]), Some(80_012_345_678)).await.unwrap(), rows(&[3]), "no country");
    assert!(scene.ledger.list_envelope_summaries(scene.run.key).await.unwrap().is_empty(), "no intent");
    let excluded = scene.ledger.load_excluded_rows(scene.run.key).await.unwrap();
    assert_eq!(excluded.find_reason(Row::new(3)), Some((RowState::Skipped, COUNTRY)));
    assert_eq!(begin(countries(&["UA"]), None).await.unwrap(), granted(1));
}

pub(super) async fn budget_refunds_rejected_rows_but_not_rows_in_doubt(scene: Scene) {
    let bounds = budget_bounds(Some("8"), Some(4));
    let begin =
        |envelope, bounds| scene.ledger.begin_envelope(intent_with_bounds(&scene, envelope, ["1", "3"], bounds));
    assert_eq!(begin(1, bounds.clone()).await.unwrap(), granted(1));
    assert_eq!(begin(2, bounds.clone()).await.unwrap(), granted(2));
    assert_eq!(begin(3, bounds.clone()).await.unwrap(), recipients_exceeded(0, 4));
    scene.settle_envelope(1, [accepted(), rejected()]).await;
    assert_eq!(begin(3, bounds.clone()).await.unwrap(), recipients_exceeded(1, 4));
    scene.settle_envelope(2, [in_doubt(), not_sent()]).await;
    assert_eq!(begin(3, budget_bounds(Some("5.99"), None)).await.unwrap(), cost_exceeded(1, "5.99", "3"));
    assert_eq!(begin(3, bounds.clone()).await.unwrap(), granted(3));
    assert_eq!(begin(4, bounds.clone()).await.unwrap(), recipients_exceeded(0, 4));
    scene.record_events(scene.lease, vec![event(4, 2, not_sent_after_all()), event(6, 3, found("REJECTED"))]).await;
    assert_eq!(begin(4, bounds.clone()).await.unwrap(), granted(4), "by decisions and later answers");
    assert_eq!(begin(5, bounds).await.unwrap(), recipients_exceeded(0, 4));
}

pub(super) async fn runs_of_an_edition_share_one_budget(scene: Scene) {
    // Spending counts even without bounds.
    assert_eq!(scene.ledger.begin_envelope(intent_with_bounds(&scene, 1, ["1", "1"], None)).await.unwrap(), granted(1));
    let bounds = budget_bounds(Some("4.5"), Some(5));
    let scene = with_second_run(scene, NewRun { gateway: "other".into(), account: "other".into(), ..new_run(7) }).await;
    assert_eq!(
        scene.ledger.begin_envelope(intent_with_bounds(&scene, 1, ["1", "1"], bounds.clone())).await.unwrap(),
        granted(1)
    );
    assert_eq!(
        scene.ledger.begin_envelope(intent_with_bounds(&scene, 2, ["1", "1"], bounds.clone())).await.unwrap(),
        cost_exceeded(0, "4.5", "4")
    );
    assert_eq!(
        scene.ledger.begin_envelope(intent_with_bounds(&scene, 2, ["0", "0"], bounds.clone())).await.unwrap(),
        recipients_exceeded(1, 5),
        "both runs count"
    );
    let others = [
        NewRun { edition: "tomorrow".into(), ..new_run(8) },
        NewRun { suppression: SuppressionPolicy { loopback: true, ..SuppressionPolicy::default() }, ..new_run(9) },
        NewRun { live: false, ..new_run(10) },
        NewRun { live: false, ..new_run(11) },
    ];
    let mut scene = scene;
    for other in others {
        scene = with_second_run(scene, other).await;
        assert_eq!(
            scene.ledger.begin_envelope(intent_with_bounds(&scene, 1, ["1", "1"], bounds.clone())).await.unwrap(),
            granted(1)
        );
        assert_eq!(
            scene.ledger.begin_envelope(intent_with_bounds(&scene, 2, ["1", "1"], bounds.clone())).await.unwrap(),
            granted(2)
        );
        assert_eq!(
            scene.ledger.begin_envelope(intent_with_bounds(&scene, 3, ["0", "0"], bounds.clone())).await.unwrap(),
            recipients_exceeded(1, 5)
        );
    }
}

pub(super) async fn budget_holds_after_a_claim(scene: Scene) {
    let bounds = budget_bounds(Some("4"), None);
    assert_eq!(
        scene.ledger.begin_envelope(intent_with_bounds(&scene, 1, ["1", "1"], bounds.clone())).await.unwrap(),
        granted(1)
    );
    let lease = scene.claim_again().await;
    let scene = Scene { lease, ..scene };
    // An open intent might have been sent.
    assert_eq!(
        scene.ledger.begin_envelope(intent_with_bounds(&scene, 2, ["1", "1.5"], bounds.clone())).await.unwrap(),
        cost_exceeded(1, "4", "3")
    );
    assert_eq!(
        scene.ledger.begin_envelope(intent_with_bounds(&scene, 2, ["1", "1"], bounds.clone())).await.unwrap(),
        granted(2)
    );
    // A late answer proves that one message in doubt was rejected and the other was sent.
    scene.settle_envelope(1, [rejected(), accepted()]).await;
    assert_eq!(
        scene.ledger.begin_envelope(intent_with_bounds(&scene, 3, ["1", "1"], bounds)).await.unwrap(),
        cost_exceeded(1, "4", "4")
    );
}

pub(super) async fn budget_counts_messages_that_receipts_prove(scene: Scene) {
    let bounds = budget_bounds(Some("99"), Some(6));
    let begin =
        |envelope, bounds| scene.ledger.begin_envelope(intent_with_bounds(&scene, envelope, ["1", "3"], bounds));
    assert_eq!(begin(1, bounds.clone()).await.unwrap(), granted(1));
    scene.settle_envelope(1, [rejected(), in_doubt()]).await;
    scene.record_events(scene.lease, vec![event(3, 1, not_sent_after_all())]).await;
    assert_eq!(begin(2, bounds.clone()).await.unwrap(), granted(2));
    scene.settle_envelope(2, [accepted(), accepted()]).await;
    scene.store_receipt(4, Status::Delivered).await;
    assert_eq!(begin(3, budget_bounds(Some("4.5"), None)).await.unwrap(), cost_exceeded(0, "4.5", "4"));
    scene.store_receipt(2, Status::Delivered).await;
    scene.store_receipt(3, Status::Read).await;
    assert_eq!(begin(3, budget_bounds(Some("8.5"), None)).await.unwrap(), cost_exceeded(0, "8.5", "8"));
    assert_eq!(begin(3, budget_bounds(None, Some(5))).await.unwrap(), recipients_exceeded(1, 5));
    assert_eq!(begin(3, bounds.clone()).await.unwrap(), granted(3));
    // A receipt that arrives before the rejection.
    scene.store_receipt(6, Status::Delivered).await;
    scene.settle_envelope(3, [rejected(), rejected()]).await;
    assert_eq!(begin(4, bounds.clone()).await.unwrap(), recipients_exceeded(1, 6));
    // A receipt of an earlier run of the edition.
    let first = scene.run.key;
    let scene = with_second_run(scene, new_run(7)).await;
    let begin = |bounds| scene.ledger.begin_envelope(intent_with_bounds(&scene, 1, ["1", "3"], bounds));
    assert_eq!(begin(bounds.clone()).await.unwrap(), recipients_exceeded(1, 6));
    scene.store_receipt_of(first, 7, Status::Delivered).await;
    assert_eq!(begin(bounds).await.unwrap(), recipients_exceeded(0, 6));
}

pub(super) async fn daily_limit_counts_messages_that_receipts_prove(scene: Scene) {
    assert_eq!(scene.ledger.begin_envelope(intent_with_daily_limits(&scene, 1, &[4])).await.unwrap(), granted(1));
    scene.settle_envelope(1, [not_sent(), rejected()]).await;
    assert_eq!(
        day_bound(scene.ledger.begin_envelope(intent_with_daily_limits(&scene, 2, &[1])).await.unwrap()),
        (1, 1)
    );
    scene.store_receipt(3, Status::Delivered).await;
    assert_eq!(
        day_bound(scene.ledger.begin_envelope(intent_with_daily_limits(&scene, 2, &[2])).await.unwrap()),
        (1, 2)
    );
    scene.store_receipt(2, Status::Routing).await;
    assert_eq!(
        day_bound(scene.ledger.begin_envelope(intent_with_daily_limits(&scene, 2, &[3])).await.unwrap()),
        (1, 3)
    );
}

/// Replaces a scene with a scene for another run in the same ledger.
pub(super) async fn with_second_run(scene: Scene, new: NewRun) -> Scene {
    drop(scene.lock);
    Scene::with_run(scene.ledger, &new).await
}

/// An intent for an envelope of two rows with daily limits.
fn intent_with_daily_limits(scene: &Scene, envelope: u32, limits: &[u32]) -> Intent {
    let per_day = DailyLimits::new(limits.to_vec(), TimeZone::UTC);
    let bounds = Some(Arc::new(Bounds { per_day, ..Bounds::default() }));
    Intent { bounds, ..scene.new_intent(envelope, scene.lease) }
}

/// The number of rows of a refused intent that fit today, and the daily limit.
fn day_bound(permit: Permit) -> (usize, u64) {
    let Permit::BoundExceeded { fits, bound: Bound::Day { limit, until, wait } } = permit else { panic!("{permit:?}") };
    let now = Timestamp::now();
    assert!(until.timestamp() > now && until.timestamp() <= now + Duration::from_hours(24), "{until}");
    assert!(wait <= Duration::from_hours(24) && now + wait + Duration::from_mins(1) > until.timestamp(), "{wait:?}");
    (fits, limit)
}

pub(super) async fn daily_limit_bounds_the_messages_of_an_edition(scene: Scene) {
    // Messages count even without a limit.
    assert_eq!(scene.ledger.begin_envelope(intent_with_bounds(&scene, 1, ["1", "1"], None)).await.unwrap(), granted(1));
    assert_eq!(
        day_bound(scene.ledger.begin_envelope(intent_with_daily_limits(&scene, 2, &[3, 9])).await.unwrap()),
        (1, 3)
    );
    assert_eq!(scene.ledger.begin_envelope(intent_with_daily_limits(&scene, 2, &[4, 9])).await.unwrap(), granted(2));
    assert_eq!(
        day_bound(scene.ledger.begin_envelope(intent_with_daily_limits(&scene, 3, &[4, 9])).await.unwrap()),
        (0, 4)
    );
    scene.settle_envelope(2, [not_sent(), in_doubt()]).await;
    assert_eq!(
        day_bound(scene.ledger.begin_envelope(intent_with_daily_limits(&scene, 3, &[4, 9])).await.unwrap()),
        (1, 4)
    );
    assert_eq!(scene.ledger.begin_envelope(intent_with_daily_limits(&scene, 3, &[5, 9])).await.unwrap(), granted(3));
    scene.record_events(scene.lease, vec![event(5, 2, not_sent_after_all())]).await;
    assert_eq!(
        day_bound(scene.ledger.begin_envelope(intent_with_daily_limits(&scene, 4, &[5])).await.unwrap()),
        (1, 5)
    );
    let scene = with_second_run(scene, NewRun { account: "other".into(), gateway: "other".into(), ..new_run(7) }).await;
    assert_eq!(
        day_bound(scene.ledger.begin_envelope(intent_with_daily_limits(&scene, 1, &[5])).await.unwrap()),
        (1, 5),
        "messages of the edition's earlier run count"
    );
    assert_eq!(scene.ledger.begin_envelope(intent_with_daily_limits(&scene, 1, &[6])).await.unwrap(), granted(1));
    let scene = with_second_run(scene, NewRun { edition: "tomorrow".into(), ..new_run(8) }).await;
    assert_eq!(scene.ledger.begin_envelope(intent_with_daily_limits(&scene, 1, &[2])).await.unwrap(), granted(1));
    // The tighter bound applies, and a new day does not renew an exhausted budget.
    let per_day = DailyLimits::new(vec![3], TimeZone::UTC);
    let both = |recipients| {
        let budget = Budget { cost: None, recipients: Some(recipients) };
        Some(Arc::new(Bounds { budget, per_day: per_day.clone(), ..Bounds::default() }))
    };
    assert_eq!(
        scene.ledger.begin_envelope(intent_with_bounds(&scene, 2, ["0", "0"], both(2))).await.unwrap(),
        recipients_exceeded(0, 2)
    );
    assert_eq!(
        scene.ledger.begin_envelope(intent_with_bounds(&scene, 2, ["0", "0"], both(3))).await.unwrap(),
        recipients_exceeded(1, 3)
    );
    assert_eq!(
        day_bound(scene.ledger.begin_envelope(intent_with_bounds(&scene, 2, ["0", "0"], both(9))).await.unwrap()),
        (1, 3)
    );
}

pub(super) async fn message_that_would_be_sent_tomorrow_is_refused(scene: Scene) {
    // Two messages take two days on this account.
    let account = Allowance::new("account", Some(1.0 / 86_400.0));
    let slow = |envelope| Intent { account: account.clone(), ..intent_with_daily_limits(&scene, envelope, &[9]) };
    let first = scene.ledger.begin_envelope(slow(1)).await.unwrap();
    assert!(matches!(first, Permit::Granted { envelope: 1, .. }), "{first:?}");
    assert_eq!(day_bound(scene.ledger.begin_envelope(slow(2)).await.unwrap()), (0, 9));
}
