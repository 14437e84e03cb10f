//! What is told, and several of a kind put together into one. Pure.

use crate::domain::Occasion;
use crate::ledger::{NewNotification, Run, State, StateCounts};
use crate::manifest::Notify;
use crate::message::Notice;
use crate::report::{counts_line_in_part, plural};

/// How many notices are told in full when several become one.
const IN_FULL: usize = 20;
/// The most characters of a text; Telegram takes 4096.
const LONGEST: usize = 3_500;

/// The notification of a notice, if somebody wants to be told of its occasion.
#[must_use]
pub fn notification(notify: &Notify, notice: &Notice) -> Option<NewNotification> {
    if !notify.when.contains(&notice.occasion) {
        return None;
    }
    // Both are our own types with names as keys, which always have a JSON form.
    let (way, text) = (serde_json::to_string(&notify.way).ok()?, serde_json::to_string(notice).ok()?);
    Some(NewNotification { occasion: notice.occasion, way, notice: text })
}

/// The notice of a run that ended with these counts, of which so many messages were delivered only in part; `why` it stopped
/// before its end, in words.
#[must_use]
pub fn about_run(
    run: &Run,
    occasion: Occasion,
    counts: &StateCounts,
    in_part: u64,
    why: Option<String>,
    at: jiff::Timestamp,
) -> Notice {
    let doubt = counts.get(State::InDoubt) + counts.get(State::Unresolved);
    let how = match (occasion, &why) {
        (Occasion::Doubt, Some(why)) => format!("stopped with {} in doubt: {why}", plural(doubt, "row")),
        (Occasion::Doubt, None) => format!("finished with {} in doubt", plural(doubt, "row")),
        (_, Some(why)) => format!("stopped: {why}"),
        (_, None) => "finished".to_owned(),
    };
    Notice {
        occasion,
        campaign: run.campaign.clone(),
        run: Some(run.name()),
        gateway: run.gateway.clone(),
        text: format!("{} through {}: {how} · {}", run.name(), run.gateway, counts_line_in_part(counts, in_part)),
        rows: run.recipients,
        counts: counts.iter().map(|(state, count)| (state.name().to_owned(), count)).collect(),
        why,
        results: None,
        at: at.to_string(),
    }
}

/// Notices of one occasion as one that tells of all; its figures are those of the last.
pub(super) fn together(notices: &[Notice]) -> Option<Notice> {
    let (last, before) = notices.split_last()?;
    if before.is_empty() {
        return Some(Notice { text: shortened(last.text.clone()), ..last.clone() });
    }
    let mut text = format!("{} campaign notifications ({}):", notices.len(), last.occasion.name());
    for notice in notices.iter().take(IN_FULL) {
        text += &format!("\n- {}", notice.text);
    }
    if let Some(more) = notices.len().checked_sub(IN_FULL).filter(|more| *more > 0) {
        text += &format!("\nand {more} more; see `campaign status`");
    }
    Some(Notice { text: shortened(text), ..last.clone() })
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::NotifyWay;

    fn notice(text: &str) -> Notice {
        Notice { text: text.to_owned(), ..Notice::sample() }
    }

    #[test]
    fn several_of_a_kind_are_one_that_tells_of_each() {
        let one = together(&[notice("a finished")]).unwrap();
        assert_eq!(one.text, "a finished");
        let three = together(&["a finished", "b finished", "c finished"].map(notice)).unwrap();
        assert_eq!(three.text, "3 campaign notifications (finished):\n- a finished\n- b finished\n- c finished");
        let many = together(&vec![notice("it finished"); 57]).unwrap();
        assert!(many.text.ends_with("and 37 more; see `campaign status`"), "{}", many.text);
        assert_eq!(together(&[notice(&"ш".repeat(9_000))]).unwrap().text.chars().count(), LONGEST + 1);
        assert_eq!(together(&[]), None);
    }

    #[tokio::test]
    async fn notice_includes_read_in_delivered_and_remarks_parts() {
        let (_, run) = crate::report::scene(&[crate::report::Fate::Waits]).await;
        let mut counts = StateCounts::default();
        [(State::Delivered, 1_618), (State::Read, 1_248)].into_iter().for_each(|(state, rows)| counts.add(state, rows));
        let notice = about_run(&run, Occasion::Finished, &counts, 3, None, jiff::Timestamp::UNIX_EPOCH);
        assert!(notice.text.ends_with("2 866 delivered (1 248 read, 3 only in part)"), "{}", notice.text);
        assert_eq!((notice.counts["delivered"], notice.counts["read"]), (1_618, 1_248), "programs get one state a row");
    }

    #[test]
    fn only_what_somebody_wants_to_know_is_told() {
        let way = NotifyWay::Command(vec!["true".to_owned()]);
        let wants = |when: Vec<Occasion>| notification(&Notify { when, way: way.clone() }, &Notice::sample());
        assert!(wants(vec![Occasion::Stopped, Occasion::Doubt]).is_none());
        let kept = wants(vec![Occasion::Finished]).unwrap();
        assert_eq!(serde_json::from_str::<NotifyWay>(&kept.way).unwrap(), way);
        assert_eq!(serde_json::from_str::<Notice>(&kept.notice).unwrap(), Notice::sample());
    }
}
