//! Delivery of notifications about runs to webhooks and programs.
//!
//! The notifier takes due notifications from the ledger, merges them, delivers them to their targets (webhooks or
//! programs), and records the results.
//!
//! The ledger stores a notification in the same transaction as its cause, and attempts to deliver it continue for an
//! hour. A failed delivery neither fails nor delays the run. A webhook URL is a secret and must not be shown.

mod targets;

pub(crate) use targets::{PublicResolver, RequestFailure};

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};

use campaign_content::message::Notice;
use campaign_core::domain::NotificationEvent;
use campaign_engine::report::{format_count, format_counts_with_partial};
use campaign_ledger::{
    CampaignLock, Ledger, LedgerError, NewNotification, Notification, NotificationOutcome, NotificationUpdate,
    RowState, Run, StateCounts,
};
use campaign_manifest::{NotificationMethod, NotifySettings};

/// The maximum number of notices that a merged notice lists.
const MAX_LISTED: usize = 20;
/// The number of characters after which a text is cut. Telegram accepts 4096.
const MAX_CHARACTERS: usize = 3_500;

/// Creates a notification for a notice if the settings select the notice's occasion.
pub fn create_notification(notify: &NotifySettings, notice: &Notice) -> Option<NewNotification> {
    if !notify.when.contains(&notice.occasion) {
        return None;
    }
    // Both types have string keys, so serializing them cannot fail.
    let (target, text) = (serde_json::to_string(&notify.method).ok()?, serde_json::to_string(notice).ok()?);
    Some(NewNotification { occasion: notice.occasion, target, notice: text })
}

/// The notice about the end of a run with these counts. `in_part` is the number of messages that were delivered only in
/// part; `why` is the reason, if the run stopped early.
pub fn run_notice(
    run: &Run,
    occasion: NotificationEvent,
    counts: &StateCounts,
    in_part: u64,
    why: Option<String>,
    at: jiff::Timestamp,
) -> Notice {
    let doubt = counts.get(RowState::InDoubt) + counts.get(RowState::Unresolved);
    let outcome = match (occasion, &why) {
        (NotificationEvent::Doubt, Some(why)) => format!("stopped with {} in doubt: {why}", format_count(doubt, "row")),
        (NotificationEvent::Doubt, None) => format!("finished with {} in doubt", format_count(doubt, "row")),
        (_, Some(why)) => format!("stopped: {why}"),
        (_, None) => "finished".to_owned(),
    };
    Notice {
        occasion,
        campaign: run.campaign.clone(),
        run: Some(run.name()),
        gateway: run.gateway.clone(),
        text: format!(
            "{} through {}: {outcome} · {}",
            run.name(),
            run.gateway,
            format_counts_with_partial(counts, in_part)
        ),
        rows: run.recipients,
        counts: counts.iter().map(|(state, count)| (state.name().to_owned(), count)).collect(),
        why,
        results: None,
        at: at.to_string(),
    }
}

/// Merges notices of the same occasion into a single notice. The figures come from the last notice. `None` if there are
/// no notices.
fn merge_notices(notices: &[Notice]) -> Option<Notice> {
    let (last, before) = notices.split_last()?;
    if before.is_empty() {
        return Some(Notice { text: truncate_text(last.text.clone()), ..last.clone() });
    }
    let mut text = format!("{} campaign notifications ({}):", notices.len(), last.occasion.name());
    for notice in notices.iter().take(MAX_LISTED) {
        text += &format!("\n- {}", notice.text);
    }
    if let Some(more) = notices.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
        text += &format!("\nand {more} more; see `campaign status`");
    }
    Some(Notice { text: truncate_text(text), ..last.clone() })
}

fn truncate_text(text: String) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The time after a notification during which further ones to the same target wait and are merged.
const MERGE_INTERVAL: Duration = Duration::from_secs(60);
/// The time after which the delivery of a notification is no longer retried.
const GIVE_UP_AFTER: SignedDuration = SignedDuration::from_hours(1);
/// The time for which notifications are claimed. A delivery takes less time.
const CLAIM_TIME: Duration = Duration::from_secs(60);
/// The timeout of a receiver if no command waits for the delivery.
const RECEIVER_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout of a receiver at the end of a run, when a command waits.
const RUN_END_TIMEOUT: Duration = Duration::from_secs(4);
/// The interval between checks of the ledger for due notifications.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The shortest and the longest delay before a retry.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
/// The maximum number of receivers that are notified at a time.
const MAX_CONCURRENT: usize = 8;
/// The lock of the one process that delivers the notifications of all processes, as a campaign name and an account. No
/// campaign can have this name.
const NOTIFIER_LOCK: (&str, &str) = ("serve.notifications", "all");

/// The programs that a process may start to notify someone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedPrograms {
    /// Every program in the record of a run or schedule.
    All,
    /// Only the program of this profile, if it has one. Other processes start the programs that campaign files name.
    OfProfile(Option<NotificationMethod>),
}

impl AllowedPrograms {
    /// Whether a notification may use this target. Only programs are restricted.
    fn allows(&self, target: &str) -> bool {
        match (self, serde_json::from_str::<NotificationMethod>(target)) {
            (Self::OfProfile(own), Ok(method @ NotificationMethod::Command(_))) => own.as_ref() == Some(&method),
            _ => true,
        }
    }
}

/// A callback after each attempt to deliver a notification. The argument is whether the attempt succeeded.
pub type OnNotified = Arc<dyn Fn(bool) + Send + Sync>;

/// Tries once, with a short timeout, to deliver the due notifications at the end of a run. A server delivers the
/// remaining notifications.
///
/// If a server runs, it delivers notifications that wait to be merged. Without a server, these notifications do not
/// wait, because no other process might deliver them.
///
/// # Errors
/// If the ledger cannot be read or written.
pub async fn notify_at_run_end(
    ledger: &dyn Ledger,
    clock: fn() -> Timestamp,
    programs: &AllowedPrograms,
) -> Result<(), LedgerError> {
    let merge_interval = if ledger.find_campaign_lock(NOTIFIER_LOCK.0, NOTIFIER_LOCK.1).await?.is_some() {
        MERGE_INTERVAL
    } else {
        Duration::ZERO
    };
    notify_once(ledger, clock, merge_interval, RUN_END_TIMEOUT, programs, &(Arc::new(|_| {}) as OnNotified)).await
}

/// Delivers due notifications until shutdown. If several processes use the same ledger, only one process delivers.
///
/// # Errors
/// If the ledger cannot be read or written.
pub async fn notify_until_shutdown(
    ledger: Arc<dyn Ledger>,
    clock: fn() -> Timestamp,
    on_notified: OnNotified,
    shutdown: impl Future<Output = ()>,
) -> Result<(), LedgerError> {
    let mut shutdown = std::pin::pin!(shutdown);
    let mut lock: Option<CampaignLock> = None;
    loop {
        if lock.is_none() {
            lock = ledger.acquire_campaign_lock(NOTIFIER_LOCK.0, NOTIFIER_LOCK.1).await?;
        }
        if lock.is_some() {
            match notify_once(
                ledger.as_ref(),
                clock,
                MERGE_INTERVAL,
                RECEIVER_TIMEOUT,
                &AllowedPrograms::All,
                &on_notified,
            )
            .await
            {
                // Another process holds the write lock. The notifications stay due and are sent later.
                Err(LedgerError::Busy { .. }) => {}
                outcome => outcome?,
            }
        }
        tokio::select! {
            () = &mut shutdown => return Ok(()),
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

/// Delivers all due notifications once.
async fn notify_once(
    ledger: &dyn Ledger,
    clock: fn() -> Timestamp,
    merge_interval: Duration,
    timeout: Duration,
    programs: &AllowedPrograms,
    on_notified: &OnNotified,
) -> Result<(), LedgerError> {
    let due = ledger.take_notifications(merge_interval, CLAIM_TIME).await?;
    let (allowed, disallowed): (Vec<_>, Vec<_>) =
        due.into_iter().partition(|notification| programs.allows(&notification.content.target));
    // Another process might be allowed to start these programs, so the notifications become due again.
    if !disallowed.is_empty() {
        let keys = disallowed.iter().map(|notification| notification.key).collect();
        let outcome = NotificationOutcome::RetryAfter(RETRY_DELAYS.0);
        ledger.update_notifications(NotificationUpdate::Attempted { keys, outcome }).await?;
    }
    let deliveries = stream::iter(group_notifications(allowed)).map(|group| async move {
        let result = deliver_group(&group, timeout).await;
        (group, result)
    });
    let mut deliveries = deliveries.buffer_unordered(MAX_CONCURRENT);
    while let Some((group, result)) = deliveries.next().await {
        on_notified(result.is_ok());
        let reason = result.err();
        for (keys, outcome) in decide_outcomes(&group, clock(), reason.is_none()) {
            if outcome == NotificationOutcome::GivenUp {
                let reason = reason.as_deref().unwrap_or_default();
                tracing::error!(
                    notifications = keys.len(),
                    "a notification was not delivered and will not be retried: {reason}"
                );
            }
            ledger.update_notifications(NotificationUpdate::Attempted { keys, outcome }).await?;
        }
        if let Some(reason) = reason {
            tracing::warn!("cannot deliver a notification: {reason}");
        }
    }
    Ok(())
}

/// Groups notifications by target and occasion, in the order of their creation.
fn group_notifications(due: Vec<Notification>) -> Vec<Vec<Notification>> {
    let mut groups: Vec<Vec<Notification>> = Vec::new();
    for notification in due {
        let has_same_target_and_occasion = |group: &&mut Vec<Notification>| {
            group.first().is_some_and(|first| {
                first.content.target == notification.content.target
                    && first.content.occasion == notification.content.occasion
            })
        };
        match groups.iter_mut().find(has_same_target_and_occasion) {
            Some(group) => group.push(notification),
            None => groups.push(vec![notification]),
        }
    }
    groups
}

/// Delivers a group as one notification.
async fn deliver_group(group: &[Notification], timeout: Duration) -> Result<(), String> {
    let unreadable = |error: serde_json::Error| format!("cannot read the stored notification: {error}");
    let notices: Vec<Notice> = group
        .iter()
        .map(|notification| serde_json::from_str(&notification.content.notice))
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    let first = group.first().ok_or("there is no notification to send")?;
    let notice = merge_notices(&notices).ok_or("there is no notification to send")?;
    match serde_json::from_str(&first.content.target).map_err(unreadable)? {
        NotificationMethod::Command(words) => targets::run_program(&words, &notice, &notices, timeout).await,
        NotificationMethod::Post { url, form, local } => {
            use secrecy::ExposeSecret as _;

            let secret = url.read_secret("the notification URL", &|name| std::env::var(name).ok())?;
            let url = targets::parse_address(secret.expose_secret(), local)?;
            targets::send_post(targets::build_post(&form, url, &notice, &notices)?, local, timeout).await
        }
    }
}

/// Decides which outcome to record for each notification. Undelivered notifications are given up once they are too old.
fn decide_outcomes(group: &[Notification], now: Timestamp, is_delivered: bool) -> Vec<(Vec<i64>, NotificationOutcome)> {
    if is_delivered {
        return vec![(group.iter().map(|notification| notification.key).collect(), NotificationOutcome::Sent)];
    }
    let attempts = group.iter().map(|notification| notification.attempts).max().unwrap_or(1);
    let is_expired = |notification: &&Notification| now.duration_since(notification.at) >= GIVE_UP_AFTER;
    let (expired, recent): (Vec<_>, Vec<_>) = group.iter().partition(is_expired);
    let keys = |part: Vec<&Notification>| part.iter().map(|notification| notification.key).collect::<Vec<_>>();
    let outcomes = [
        (keys(expired), NotificationOutcome::GivenUp),
        (keys(recent), NotificationOutcome::RetryAfter(retry_delay(attempts))),
    ];
    outcomes.into_iter().filter(|(keys, _)| !keys.is_empty()).collect()
}

/// The delay before the next attempt after this many attempts.
fn retry_delay(attempts: u32) -> Duration {
    let (shortest, longest) = RETRY_DELAYS;
    shortest.saturating_mul(2_u32.saturating_pow(attempts.saturating_sub(1))).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_manifest::NotificationMethod;

    fn notice(text: &str) -> Notice {
        Notice { text: text.to_owned(), ..Notice::sample() }
    }

    #[test]
    fn merged_notice_lists_each_notice_up_to_a_limit() {
        let single = merge_notices(&[notice("a finished")]).unwrap();
        assert_eq!(single.text, "a finished");
        let three = merge_notices(&["a finished", "b finished", "c finished"].map(notice)).unwrap();
        assert_eq!(three.text, "3 campaign notifications (finished):\n- a finished\n- b finished\n- c finished");
        let many = merge_notices(&vec![notice("it finished"); 57]).unwrap();
        assert!(many.text.ends_with("and 37 more; see `campaign status`"), "{}", many.text);
        assert_eq!(merge_notices(&[notice(&"ш".repeat(9_000))]).unwrap().text.chars().count(), MAX_CHARACTERS + 1);
        assert_eq!(merge_notices(&[]), None);
    }

    #[tokio::test]
    async fn notice_includes_read_messages_and_partial_deliveries() {
        let (_, run) = campaign_testing::build_run(&[campaign_testing::RowCase::Planned]).await;
        let mut counts = StateCounts::default();
        [(RowState::Delivered, 1_618), (RowState::Read, 1_248)]
            .into_iter()
            .for_each(|(state, rows)| counts.add(state, rows));
        let notice = run_notice(&run, NotificationEvent::Finished, &counts, 3, None, jiff::Timestamp::UNIX_EPOCH);
        assert!(notice.text.ends_with("2 866 delivered (1 248 read, 3 only in part)"), "{}", notice.text);
        assert_eq!(
            (notice.counts["delivered"], notice.counts["read"]),
            (1_618, 1_248),
            "programs get one state per row"
        );
    }

    #[test]
    fn notifications_are_created_only_for_selected_events() {
        let method = NotificationMethod::Command(vec!["true".to_owned()]);
        let create = |when: Vec<NotificationEvent>| {
            create_notification(&NotifySettings { when, method: method.clone() }, &Notice::sample())
        };
        assert!(create(vec![NotificationEvent::Stopped, NotificationEvent::Doubt]).is_none());
        let created = create(vec![NotificationEvent::Finished]).unwrap();
        assert_eq!(serde_json::from_str::<NotificationMethod>(&created.target).unwrap(), method);
        assert_eq!(serde_json::from_str::<Notice>(&created.notice).unwrap(), Notice::sample());
    }
}

#[cfg(test)]
mod delivery_tests {
    use super::*;
    use campaign_core::domain::NotificationEvent;
    use campaign_ledger::NewNotification;

    fn stored_notification(
        key: i64,
        target: &str,
        occasion: NotificationEvent,
        minutes_ago: i64,
        attempts: u32,
    ) -> Notification {
        let at = Timestamp::from_second(1_800_000_000 - minutes_ago * 60).unwrap();
        let content = NewNotification { occasion, target: target.to_owned(), notice: String::new() };
        Notification { key, at, attempts, content }
    }

    #[test]
    fn restricted_process_runs_only_the_command_of_its_profile() {
        let command = |word: &str| NotificationMethod::Command(vec![word.to_owned()]);
        let json = |method: &NotificationMethod| serde_json::to_string(method).unwrap();
        let post = r#"{"post":{"url":{"env":"URL"},"form":"json","local":false}}"#;
        let (restricted, none) = (AllowedPrograms::OfProfile(Some(command("own"))), AllowedPrograms::OfProfile(None));
        for (programs, word, allowed) in [
            (&AllowedPrograms::All, "other", true),
            (&restricted, "own", true),
            (&restricted, "other", false),
            (&none, "own", false),
        ] {
            assert_eq!(programs.allows(&json(&command(word))), allowed, "{programs:?} {word}");
            assert!(programs.allows(post), "{programs:?}");
        }
    }

    #[test]
    fn notifications_are_grouped_by_target_and_occasion() {
        let due = [
            ("a", NotificationEvent::Finished),
            ("b", NotificationEvent::Finished),
            ("a", NotificationEvent::Stopped),
            ("a", NotificationEvent::Finished),
        ];
        let due =
            (0..).zip(due).map(|(key, (target, occasion))| stored_notification(key, target, occasion, 0, 1)).collect();
        let keys: Vec<Vec<i64>> =
            group_notifications(due).iter().map(|group| group.iter().map(|stored| stored.key).collect()).collect();
        assert_eq!(keys, [vec![0, 3], vec![1], vec![2]]);
    }

    #[test]
    fn notification_is_retried_with_backoff_for_an_hour() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let group = [
            stored_notification(1, "a", NotificationEvent::Finished, 61, 20),
            stored_notification(2, "a", NotificationEvent::Finished, 3, 2),
        ];
        let longest = NotificationOutcome::RetryAfter(Duration::from_secs(300));
        assert_eq!(decide_outcomes(&group, now, false), [(vec![1], NotificationOutcome::GivenUp), (vec![2], longest)]);
        assert_eq!(
            decide_outcomes(&group[1..], now, false),
            [(vec![2], NotificationOutcome::RetryAfter(Duration::from_secs(10)))]
        );
        assert_eq!(decide_outcomes(&group, now, true), [(vec![1, 2], NotificationOutcome::Sent)]);
        let mut last = Duration::ZERO;
        for tries in 1..100 {
            assert!(retry_delay(tries) >= last && retry_delay(tries) <= RETRY_DELAYS.1);
            last = retry_delay(tries);
        }
        assert_eq!((retry_delay(1), last), RETRY_DELAYS);
    }
}
