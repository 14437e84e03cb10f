//! Taking what is due from the ledger, bringing it, and keeping what became of it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};

use super::notice::together;
use super::{command, form, post};
use crate::ledger::{Hold, Ledger, LedgerError, Notification, Told};
use crate::manifest::NotifyWay;
use crate::message::Notice;

/// How long after something was sent more of its kind to the same place waits, to become one.
const APART: Duration = Duration::from_secs(60);
/// How long a notification is tried.
const TRIED_FOR: SignedDuration = SignedDuration::from_hours(1);
/// How long what was taken is nobody else's; longer than bringing it takes.
const HELD: Duration = Duration::from_secs(60);
/// How long a receiver may take, where nobody waits.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same at the end of a run.
const MOMENT: Duration = Duration::from_secs(4);
/// How often it is looked whether something is due.
const LOOK: Duration = Duration::from_secs(1);
/// The shortest and the longest wait before another try.
const AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
/// How many receivers are told at a time.
const AT_A_TIME: usize = 8;
/// What the one process holds that tells for all; no campaign can have this name.
const TELLER: (&str, &str) = ("serve.notifications", "all");

/// The programs that a process may start to notify someone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Programs {
    /// Every program that a run or a schedule recorded.
    All,
    /// Only the program of this profile, if it has one; what campaign files name is left to other processes.
    OfProfile(Option<NotifyWay>),
}

impl Programs {
    /// Whether a notification goes out this way; only programs are restricted.
    fn allow(&self, way: &str) -> bool {
        match (self, serde_json::from_str::<NotifyWay>(way)) {
            (Self::OfProfile(own), Ok(way @ NotifyWay::Command(_))) => own.as_ref() == Some(&way),
            _ => true,
        }
    }
}

/// Told of each try, whether it was taken in.
pub type OnTold = Arc<dyn Fn(bool) + Send + Sync>;

/// Tells what is due for a moment at the end of a run; the rest is left to a server.
///
/// Where a server runs, what has to wait to become one with others is left to it; where none runs, nobody else might come.
///
/// # Errors
/// When the ledger cannot be read or written.
pub async fn tell_at_end(
    ledger: &dyn Ledger,
    clock: fn() -> Timestamp,
    programs: &Programs,
) -> Result<(), LedgerError> {
    let apart = if ledger.is_held(TELLER.0, TELLER.1).await? { APART } else { Duration::ZERO };
    round(ledger, clock, (apart, MOMENT), (programs, &(Arc::new(|_| {}) as OnTold))).await
}

/// Tells what is due until the shutdown; of several processes on one ledger one does.
///
/// # Errors
/// When the ledger cannot be read or written.
pub async fn keep_telling(
    ledger: Arc<dyn Ledger>,
    clock: fn() -> Timestamp,
    on_told: OnTold,
    shutdown: impl Future<Output = ()>,
) -> Result<(), LedgerError> {
    let mut shutdown = std::pin::pin!(shutdown);
    let mut turn: Option<Hold> = None;
    loop {
        if turn.is_none() {
            turn = ledger.hold(TELLER.0, TELLER.1).await?;
        }
        if turn.is_some() {
            match round(ledger.as_ref(), clock, (APART, PATIENCE), (&Programs::All, &on_told)).await {
                // Another process has the turn to write; what is due then is due still.
                Err(LedgerError::Busy { .. }) => {}
                told => told?,
            }
        }
        tokio::select! {
            () = &mut shutdown => return Ok(()),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Tells once what is due.
async fn round(
    ledger: &dyn Ledger,
    clock: fn() -> Timestamp,
    (apart, patience): (Duration, Duration),
    (programs, on_told): (&Programs, &OnTold),
) -> Result<(), LedgerError> {
    if !ledger.notifications_due(apart).await? {
        return Ok(());
    }
    let taken = ledger.take_notifications(apart, HELD).await?;
    let (taken, others): (Vec<_>, Vec<_>) = taken.into_iter().partition(|one| programs.allow(&one.what.way));
    if !others.is_empty() {
        ledger.told(others.iter().map(|one| one.key).collect(), Told::Again(AGAIN.0)).await?;
    }
    let brought = stream::iter(groups(taken)).map(|group| async move {
        let brought = bring(&group, patience).await;
        (group, brought)
    });
    let mut brought = brought.buffer_unordered(AT_A_TIME);
    while let Some((group, result)) = brought.next().await {
        on_told(result.is_ok());
        let reason = result.err();
        for (keys, told) in verdicts(&group, clock(), reason.is_none()) {
            if told == Told::GivenUp {
                let reason = reason.as_deref().unwrap_or_default();
                tracing::error!(
                    notifications = keys.len(),
                    "a notification was not delivered and will not be retried: {reason}"
                );
            }
            ledger.told(keys, told).await?;
        }
        if let Some(reason) = reason {
            tracing::warn!("cannot deliver a notification: {reason}");
        }
    }
    Ok(())
}

/// What belongs together, in the order in which it came.
fn groups(taken: Vec<Notification>) -> Vec<Vec<Notification>> {
    let mut groups: Vec<Vec<Notification>> = Vec::new();
    for one in taken {
        let same = |group: &&mut Vec<Notification>| {
            group
                .first()
                .is_some_and(|first| first.what.way == one.what.way && first.what.occasion == one.what.occasion)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// Brings what belongs together as one.
async fn bring(group: &[Notification], patience: Duration) -> Result<(), String> {
    let unreadable = |error: serde_json::Error| format!("cannot read the stored notification: {error}");
    let notices: Vec<Notice> =
        group.iter().map(|one| serde_json::from_str(&one.what.notice)).collect::<Result<_, _>>().map_err(unreadable)?;
    let first = group.first().ok_or("there is no notification to send")?;
    let notice = together(&notices).ok_or("there is no notification to send")?;
    match serde_json::from_str(&first.what.way).map_err(unreadable)? {
        NotifyWay::Command(words) => command::start(&words, &notice, &notices, patience).await,
        NotifyWay::Post { url, form, local } => {
            use secrecy::ExposeSecret as _;

            let secret = url.read("the notification URL", &|name| std::env::var(name).ok())?;
            let url = post::address(secret.expose_secret(), local)?;
            post::send(form::post(&form, url, &notice, &notices)?, local, patience).await
        }
    }
}

/// What is kept of each: those that were tried for long enough are given up.
fn verdicts(group: &[Notification], now: Timestamp, taken: bool) -> Vec<(Vec<i64>, Told)> {
    if taken {
        return vec![(group.iter().map(|one| one.key).collect(), Told::Sent)];
    }
    let tries = group.iter().map(|one| one.tries).max().unwrap_or(1);
    let (old, young): (Vec<_>, Vec<_>) = group.iter().partition(|one| now.duration_since(one.at) >= TRIED_FOR);
    let keys = |part: Vec<&Notification>| part.iter().map(|one| one.key).collect::<Vec<_>>();
    let verdicts = [(keys(old), Told::GivenUp), (keys(young), Told::Again(wait(tries)))];
    verdicts.into_iter().filter(|(keys, _)| !keys.is_empty()).collect()
}

/// How long to wait after so many tries.
fn wait(tries: u32) -> Duration {
    let (shortest, longest) = AGAIN;
    shortest.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1))).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Occasion;
    use crate::ledger::NewNotification;

    fn kept(key: i64, way: &str, occasion: Occasion, (minutes, tries): (i64, u32)) -> Notification {
        let at = Timestamp::from_second(1_800_000_000 - minutes * 60).unwrap();
        let what = NewNotification { occasion, way: way.to_owned(), notice: String::new() };
        Notification { key, at, tries, what }
    }

    #[test]
    fn process_of_a_profile_starts_no_other_program() {
        let way = |word: &str| NotifyWay::Command(vec![word.to_owned()]);
        let json = |way: &NotifyWay| serde_json::to_string(way).unwrap();
        let post = r#"{"post":{"url":{"env":"URL"},"form":"json","local":false}}"#;
        let (own, none) = (Programs::OfProfile(Some(way("own"))), Programs::OfProfile(None));
        for (programs, word, allowed) in
            [(&Programs::All, "other", true), (&own, "own", true), (&own, "other", false), (&none, "own", false)]
        {
            assert_eq!(programs.allow(&json(&way(word))), allowed, "{programs:?} {word}");
            assert!(programs.allow(post), "{programs:?}");
        }
    }

    #[test]
    fn what_goes_to_one_place_on_one_occasion_belongs_together() {
        let taken =
            [("a", Occasion::Finished), ("b", Occasion::Finished), ("a", Occasion::Stopped), ("a", Occasion::Finished)];
        let taken = (0..).zip(taken).map(|(key, (way, occasion))| kept(key, way, occasion, (0, 1))).collect();
        let keys: Vec<Vec<i64>> = groups(taken).iter().map(|group| group.iter().map(|one| one.key).collect()).collect();
        assert_eq!(keys, [vec![0, 3], vec![1], vec![2]]);
    }

    #[test]
    fn a_notification_is_tried_for_an_hour_ever_more_seldom_and_then_given_up() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let group = [kept(1, "a", Occasion::Finished, (61, 20)), kept(2, "a", Occasion::Finished, (3, 2))];
        let longest = Told::Again(Duration::from_secs(300));
        assert_eq!(verdicts(&group, now, false), [(vec![1], Told::GivenUp), (vec![2], longest)]);
        assert_eq!(verdicts(&group[1..], now, false), [(vec![2], Told::Again(Duration::from_secs(10)))]);
        assert_eq!(verdicts(&group, now, true), [(vec![1, 2], Told::Sent)]);
        let mut last = Duration::ZERO;
        for tries in 1..100 {
            assert!(wait(tries) >= last && wait(tries) <= AGAIN.1);
            last = wait(tries);
        }
        assert_eq!((wait(1), last), AGAIN);
    }
}
