//! What is told, and several of a kind put together into one. Pure.

use crate::domain::NotificationEvent;
use crate::ledger::{NewNotification, RowState, Run, StateCounts};
use crate::manifest::NotifySettings;
use crate::message::Notice;
use crate::report::{format_count, format_counts_in_part};

/// How many notices are told in full when several become one.
const MAX_LISTED: usize = 20;
/// The most characters of a text; Telegram takes 4096.
const MAX_CHARACTERS: usize = 3_500;

/// The notification of a notice, if somebody wants to be told of its occasion.
#[must_use]
pub fn create_notification(notify: &NotifySettings, notice: &Notice) -> Option<NewNotification> {
    if !notify.when.contains(&notice.occasion) {
        return None;
    }
    // Both are our own types with names as keys, which always have a JSON form.
    let (way, text) = (serde_json::to_string(&notify.method).ok()?, serde_json::to_string(notice).ok()?);
    Some(NewNotification { occasion: notice.occasion, target: way, notice: text })
}

/// The notice of a run that ended with these counts, of which so many messages were delivered only in part; `why` it stopped
/// before its end, in words.
#[must_use]
pub fn run_notice(
    run: &Run,
    occasion: NotificationEvent,
    counts: &StateCounts,
    in_part: u64,
    why: Option<String>,
    at: jiff::Timestamp,
) -> Notice {
    let doubt = counts.get(RowState::InDoubt) + counts.get(RowState::Unresolved);
    let how = match (occasion, &why) {
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
        text: format!("{} through {}: {how} · {}", run.name(), run.gateway, format_counts_in_part(counts, in_part)),
        rows: run.recipients,
        counts: counts.iter().map(|(state, count)| (state.name().to_owned(), count)).collect(),
        why,
        results: None,
        at: at.to_string(),
    }
}

/// Notices of one occasion as one that tells of all; its figures are those of the last.
pub(super) fn merge_notices(notices: &[Notice]) -> Option<Notice> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::NotificationMethod;

    fn notice(text: &str) -> Notice {
        Notice { text: text.to_owned(), ..Notice::sample() }
    }

    #[test]
    fn similar_notices_merge_into_one_that_lists_each() {
        let one = merge_notices(&[notice("a finished")]).unwrap();
        assert_eq!(one.text, "a finished");
        let three = merge_notices(&["a finished", "b finished", "c finished"].map(notice)).unwrap();
        assert_eq!(three.text, "3 campaign notifications (finished):\n- a finished\n- b finished\n- c finished");
        let many = merge_notices(&vec![notice("it finished"); 57]).unwrap();
        assert!(many.text.ends_with("and 37 more; see `campaign status`"), "{}", many.text);
        assert_eq!(merge_notices(&[notice(&"ш".repeat(9_000))]).unwrap().text.chars().count(), MAX_CHARACTERS + 1);
        assert_eq!(merge_notices(&[]), None);
    }

    #[tokio::test]
    async fn notice_counts_read_as_delivered_and_mentions_parts() {
        let (_, run) = crate::report::build_run(&[crate::report::RowCase::Planned]).await;
        let mut counts = StateCounts::default();
        [(RowState::Delivered, 1_618), (RowState::Read, 1_248)]
            .into_iter()
            .for_each(|(state, rows)| counts.add(state, rows));
        let notice = run_notice(&run, NotificationEvent::Finished, &counts, 3, None, jiff::Timestamp::UNIX_EPOCH);
        assert!(notice.text.ends_with("2 866 delivered (1 248 read, 3 only in part)"), "{}", notice.text);
        assert_eq!((notice.counts["delivered"], notice.counts["read"]), (1_618, 1_248), "programs get one state a row");
    }

    #[test]
    fn only_selected_occasions_are_notified() {
        let way = NotificationMethod::Command(vec!["true".to_owned()]);
        let wants = |when: Vec<NotificationEvent>| {
            create_notification(&NotifySettings { when, method: way.clone() }, &Notice::sample())
        };
        assert!(wants(vec![NotificationEvent::Stopped, NotificationEvent::Doubt]).is_none());
        let kept = wants(vec![NotificationEvent::Finished]).unwrap();
        assert_eq!(serde_json::from_str::<NotificationMethod>(&kept.target).unwrap(), way);
        assert_eq!(serde_json::from_str::<Notice>(&kept.notice).unwrap(), Notice::sample());
    }
}
