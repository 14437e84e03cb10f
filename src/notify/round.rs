//! Taking what is due from the ledger, bringing it, and keeping what became of it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};

use super::notice::merge_notices;
use super::{command, form, post};
use crate::ledger::{CampaignLock, Ledger, LedgerError, Notification, NotificationOutcome};
use crate::manifest::NotificationMethod;
use crate::message::Notice;

/// How long after something was sent more of its kind to the same place waits, to become one.
const MERGE_INTERVAL: Duration = Duration::from_secs(60);
/// How long a notification is tried.
const GIVE_UP_AFTER: SignedDuration = SignedDuration::from_hours(1);
/// How long what was taken is nobody else's; longer than bringing it takes.
const CLAIM_TIME: Duration = Duration::from_secs(60);
/// How long a receiver may take, where nobody waits.
const RECEIVER_TIMEOUT: Duration = Duration::from_secs(10);
/// The same at the end of a run.
const RUN_END_TIMEOUT: Duration = Duration::from_secs(4);
/// How often it is looked whether something is due.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The shortest and the longest wait before another try.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
/// How many receivers are told at a time.
const MAX_CONCURRENT: usize = 8;
/// What the one process holds that tells for all; no campaign can have this name.
const NOTIFIER_HOLD: (&str, &str) = ("serve.notifications", "all");

/// The programs that a process may start to notify someone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedPrograms {
    /// Every program that a run or a schedule recorded.
    All,
    /// Only the program of this profile, if it has one; what campaign files name is left to other processes.
    OfProfile(Option<NotificationMethod>),
}

impl AllowedPrograms {
    /// Whether a notification goes out this way; only programs are restricted.
    fn allows(&self, way: &str) -> bool {
        match (self, serde_json::from_str::<NotificationMethod>(way)) {
            (Self::OfProfile(own), Ok(way @ NotificationMethod::Command(_))) => own.as_ref() == Some(&way),
            _ => true,
        }
    }
}

/// Told of each try, whether it was taken in.
pub type OnNotified = Arc<dyn Fn(bool) + Send + Sync>;

/// Tells what is due for a moment at the end of a run; the rest is left to a server.
///
/// Where a server runs, what has to wait to become one with others is left to it; where none runs, nobody else might come.
///
/// # Errors
/// When the ledger cannot be read or written.
pub async fn notify_at_run_end(
    ledger: &dyn Ledger,
    clock: fn() -> Timestamp,
    programs: &AllowedPrograms,
) -> Result<(), LedgerError> {
    let apart = if ledger.is_campaign_locked(NOTIFIER_HOLD.0, NOTIFIER_HOLD.1).await? {
        MERGE_INTERVAL
    } else {
        Duration::ZERO
    };
    notify_once(ledger, clock, (apart, RUN_END_TIMEOUT), (programs, &(Arc::new(|_| {}) as OnNotified))).await
}

/// Tells what is due until the shutdown; of several processes on one ledger one does.
///
/// # Errors
/// When the ledger cannot be read or written.
pub async fn notify_until_shutdown(
    ledger: Arc<dyn Ledger>,
    clock: fn() -> Timestamp,
    on_told: OnNotified,
    shutdown: impl Future<Output = ()>,
) -> Result<(), LedgerError> {
    let mut shutdown = std::pin::pin!(shutdown);
    let mut turn: Option<CampaignLock> = None;
    loop {
        if turn.is_none() {
            turn = ledger.acquire_campaign_lock(NOTIFIER_HOLD.0, NOTIFIER_HOLD.1).await?;
        }
        if turn.is_some() {
            match notify_once(
                ledger.as_ref(),
                clock,
                (MERGE_INTERVAL, RECEIVER_TIMEOUT),
                (&AllowedPrograms::All, &on_told),
            )
            .await
            {
                // Another process has the turn to write; what is due then is due still.
                Err(LedgerError::Busy { .. }) => {}
                told => told?,
            }
        }
        tokio::select! {
            () = &mut shutdown => return Ok(()),
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

/// Tells once what is due.
async fn notify_once(
    ledger: &dyn Ledger,
    clock: fn() -> Timestamp,
    (apart, patience): (Duration, Duration),
    (programs, on_told): (&AllowedPrograms, &OnNotified),
) -> Result<(), LedgerError> {
    if !ledger.has_due_notifications(apart).await? {
        return Ok(());
    }
    let taken = ledger.take_notifications(apart, CLAIM_TIME).await?;
    let (taken, others): (Vec<_>, Vec<_>) = taken.into_iter().partition(|one| programs.allows(&one.content.target));
    if !others.is_empty() {
        ledger
            .record_notification_outcome(
                others.iter().map(|one| one.key).collect(),
                NotificationOutcome::RetryAfter(RETRY_DELAYS.0),
            )
            .await?;
    }
    let brought = stream::iter(group_notifications(taken)).map(|group| async move {
        let brought = deliver_group(&group, patience).await;
        (group, brought)
    });
    let mut brought = brought.buffer_unordered(MAX_CONCURRENT);
    while let Some((group, result)) = brought.next().await {
        on_told(result.is_ok());
        let reason = result.err();
        for (keys, told) in decide_outcomes(&group, clock(), reason.is_none()) {
            if told == NotificationOutcome::GivenUp {
                let reason = reason.as_deref().unwrap_or_default();
                tracing::error!(
                    notifications = keys.len(),
                    "a notification was not delivered and will not be retried: {reason}"
                );
            }
            ledger.record_notification_outcome(keys, told).await?;
        }
        if let Some(reason) = reason {
            tracing::warn!("cannot deliver a notification: {reason}");
        }
    }
    Ok(())
}

/// What belongs together, in the order in which it came.
fn group_notifications(taken: Vec<Notification>) -> Vec<Vec<Notification>> {
    let mut groups: Vec<Vec<Notification>> = Vec::new();
    for one in taken {
        let same = |group: &&mut Vec<Notification>| {
            group.first().is_some_and(|first| {
                first.content.target == one.content.target && first.content.occasion == one.content.occasion
            })
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// Brings what belongs together as one.
async fn deliver_group(group: &[Notification], patience: Duration) -> Result<(), String> {
    let unreadable = |error: serde_json::Error| format!("cannot read the stored notification: {error}");
    let notices: Vec<Notice> = group
        .iter()
        .map(|one| serde_json::from_str(&one.content.notice))
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    let first = group.first().ok_or("there is no notification to send")?;
    let notice = merge_notices(&notices).ok_or("there is no notification to send")?;
    match serde_json::from_str(&first.content.target).map_err(unreadable)? {
        NotificationMethod::Command(words) => command::run_program(&words, &notice, &notices, patience).await,
        NotificationMethod::Post { url, form, local } => {
            use secrecy::ExposeSecret as _;

            let secret = url.read_secret("the notification URL", &|name| std::env::var(name).ok())?;
            let url = post::parse_address(secret.expose_secret(), local)?;
            post::send_post(form::build_post(&form, url, &notice, &notices)?, local, patience).await
        }
    }
}

/// What is kept of each: those that were tried for long enough are given up.
fn decide_outcomes(group: &[Notification], now: Timestamp, taken: bool) -> Vec<(Vec<i64>, NotificationOutcome)> {
    if taken {
        return vec![(group.iter().map(|one| one.key).collect(), NotificationOutcome::Sent)];
    }
    let tries = group.iter().map(|one| one.attempts).max().unwrap_or(1);
    let (old, young): (Vec<_>, Vec<_>) = group.iter().partition(|one| now.duration_since(one.at) >= GIVE_UP_AFTER);
    let keys = |part: Vec<&Notification>| part.iter().map(|one| one.key).collect::<Vec<_>>();
    let verdicts =
        [(keys(old), NotificationOutcome::GivenUp), (keys(young), NotificationOutcome::RetryAfter(retry_delay(tries)))];
    verdicts.into_iter().filter(|(keys, _)| !keys.is_empty()).collect()
}

/// How long to wait after so many tries.
fn retry_delay(tries: u32) -> Duration {
    let (shortest, longest) = RETRY_DELAYS;
    shortest.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1))).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::NotificationEvent;
    use crate::ledger::NewNotification;

    fn stored_notification(
        key: i64,
        way: &str,
        occasion: NotificationEvent,
        (minutes, tries): (i64, u32),
    ) -> Notification {
        let at = Timestamp::from_second(1_800_000_000 - minutes * 60).unwrap();
        let what = NewNotification { occasion, target: way.to_owned(), notice: String::new() };
        Notification { key, at, attempts: tries, content: what }
    }

    #[test]
    fn profile_process_starts_no_other_program() {
        let way = |word: &str| NotificationMethod::Command(vec![word.to_owned()]);
        let json = |way: &NotificationMethod| serde_json::to_string(way).unwrap();
        let post = r#"{"post":{"url":{"env":"URL"},"form":"json","local":false}}"#;
        let (own, none) = (AllowedPrograms::OfProfile(Some(way("own"))), AllowedPrograms::OfProfile(None));
        for (programs, word, allowed) in
            [(&AllowedPrograms::All, "other", true), (&own, "own", true), (&own, "other", false), (&none, "own", false)]
        {
            assert_eq!(programs.allows(&json(&way(word))), allowed, "{programs:?} {word}");
            assert!(programs.allows(post), "{programs:?}");
        }
    }

    #[test]
    fn notifications_group_by_receiver_and_occasion() {
        let taken = [
            ("a", NotificationEvent::Finished),
            ("b", NotificationEvent::Finished),
            ("a", NotificationEvent::Stopped),
            ("a", NotificationEvent::Finished),
        ];
        let taken =
            (0..).zip(taken).map(|(key, (way, occasion))| stored_notification(key, way, occasion, (0, 1))).collect();
        let keys: Vec<Vec<i64>> =
            group_notifications(taken).iter().map(|group| group.iter().map(|one| one.key).collect()).collect();
        assert_eq!(keys, [vec![0, 3], vec![1], vec![2]]);
    }

    #[test]
    fn notification_backs_off_and_is_given_up_after_an_hour() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let group = [
            stored_notification(1, "a", NotificationEvent::Finished, (61, 20)),
            stored_notification(2, "a", NotificationEvent::Finished, (3, 2)),
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
