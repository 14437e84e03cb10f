//! What to do if the inputs of a run changed since it began. Pure.
//! The option for what changed comes first, the others after it. With `--accept-changes`, a new run replaces the old one and skips
//! recipients who have the message or might have it.

use std::path::Path;

use crate::cli::suggested::{RepeatedOptions, shell_path, with_gateway};
use crate::runs::{ChangedInputs, EarlierEdition, InputChanges};

/// What to do about an unfinished run whose inputs changed.
pub(super) fn changed_inputs_hint(changed: &ChangedInputs, options: &RepeatedOptions) -> String {
    let ChangedInputs { run, file, gateway, changes, earlier_edition } = changed;
    let accept = accept_command(file, gateway.as_deref(), options);
    let stop = options.command(format!("stop {run} --for-good"));
    if let Some(edition) = earlier_edition {
        return earlier_edition_hint(run, edition, (&accept, &stop));
    }
    match changes {
        InputChanges::List { .. } => format!(
            "to send to the current list, except recipients who already got the message: `{accept}`; to finish with \
             the old list, restore it; to cancel the rest: `{stop}`"
        ),
        InputChanges::Campaign(_) => format!(
            "to apply the changes to recipients who have not got a message yet: `{accept}`; to finish without the changes, \
             undo them; to cancel the rest: `{stop}`"
        ),
        InputChanges::Copies { .. } => format!(
            "to send from the current files, except to recipients who already got the message: `{accept}`; to cancel \
             the rest: `{stop}`"
        ),
    }
}

/// What to do about a run whose rows cannot be retried, because its inputs changed.
pub(super) fn retry_hint(changes: &InputChanges, campaign: &Path, gateway: &str, options: &RepeatedOptions) -> String {
    let accept = accept_command(campaign, Some(gateway), options);
    let send = format!("to send with the changes to recipients who have not got a message yet: `{accept}`");
    match changes {
        InputChanges::List { .. } => format!(
            "{send}; to retry with the old list, restore it; to send again only to recipients whose message failed, use \
             `recipients: {{ run: …, state: failed }}` in another campaign"
        ),
        InputChanges::Campaign(_) => format!("{send}; to retry without the changes, undo them"),
        InputChanges::Copies { .. } => send,
    }
}

/// What to do if the changed run belongs to an earlier edition, such as that of yesterday.
fn earlier_edition_hint(run: &str, edition: &EarlierEdition, (accept, stop): (&str, &str)) -> String {
    let now = if edition.current.is_empty() {
        "the message without an edition".to_owned()
    } else {
        edition.describe_current()
    };
    let first = format!("to cancel the rest of {run}: `{stop}`, then run the same command again");
    match edition.is_kept {
        true => format!(
            "{first}; to send with the changes to recipients who have not got a message from {run} yet: `{accept}`; the next \
             run sends {now}"
        ),
        false => format!(
            "{first}; to send {now} to recipients who have not got a message from {run}: `{accept}`; the next run sends {now} \
             to the others"
        ),
    }
}

fn accept_command(campaign: &Path, gateway: Option<&str>, options: &RepeatedOptions) -> String {
    options.command(format!("{} --accept-changes", with_gateway(format!("run {}", shell_path(campaign)), gateway)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed_hint(changes: InputChanges, earlier_edition: Option<EarlierEdition>) -> String {
        let (run, file, gateway) = ("sale@1".to_owned(), "sale.yaml".into(), Some("other".to_owned()));
        changed_inputs_hint(
            &ChangedInputs { run, file, gateway, changes, earlier_edition },
            &RepeatedOptions::default(),
        )
    }

    #[test]
    fn hint_names_the_command_for_what_changed_first() {
        const ACCEPT: &str = "`campaign run sale.yaml --gateway other --accept-changes`";
        const STOP: &str = "`campaign stop sale@1 --for-good`";
        let list = || InputChanges::List { list: "sale.csv".to_owned(), how: "10 rows added".to_owned() };
        let copies = InputChanges::Copies { place: "runs/sale@1".to_owned(), damaged: true };
        for (changes, first) in [
            (list(), "to send to the current list"),
            (InputChanges::Campaign(vec!["`vars`".to_owned()]), "to apply the changes"),
            (copies, "to send from the current files"),
        ] {
            let told = changed_hint(changes, None);
            assert!(told.starts_with(first) && told.ends_with(STOP), "{told}");
            assert!(told.find(ACCEPT) < told.find(STOP), "{told}");
        }
        for is_kept in [true, false] {
            let edition = EarlierEdition { unfinished: "monday".to_owned(), current: "tuesday".to_owned(), is_kept };
            let told = changed_hint(list(), Some(edition));
            assert!(told.starts_with("to cancel the rest of sale@1"), "{told}");
            assert!(told.find(STOP) < told.find(ACCEPT), "{told}");
            let without = EarlierEdition { unfinished: String::new(), current: String::new(), is_kept };
            let told = changed_hint(list(), Some(without));
            assert!(told.contains("the message without an edition") && !told.contains("no edition"), "{told}");
        }
    }
}
