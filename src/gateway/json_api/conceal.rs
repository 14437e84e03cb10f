//! The key, taken out of a gateway's words before anybody keeps or shows them; and people's numbers, before they are shown.

use std::borrow::Cow;
use std::sync::Arc;

use super::cut::find_cut;
use crate::domain::OperationOutcome;
use crate::gateway::{Envelope, GatewayReply, Signal};

/// What stands where the key stood.
const CONCEALED: &str = "[key]";

/// Takes the key out of every text of a reply that may quote the request.
///
/// A key shorter than eight characters is no secret, and taking it out would garble our own words.
pub(super) fn conceal_key(reply: &mut GatewayReply, key: &str) {
    key_spellings(key).iter().for_each(|key| conceal_spelling(reply, key));
}

/// Takes the key out of one text, on the same terms.
pub(super) fn conceal_text(text: &mut String, key: &str) {
    key_spellings(key).iter().for_each(|key| replace_key(text, key));
}

/// How the key may stand in an answer; not at all when it is no secret.
fn key_spellings(key: &str) -> Vec<String> {
    const SHORTEST: usize = 8;
    if key.len() < SHORTEST {
        return Vec::new();
    }
    // Some JSON writers put a backslash before a slash.
    let escaped = key.contains('/').then(|| key.replace('/', r"\/"));
    [Some(key.to_owned()), escaped].into_iter().flatten().collect()
}

/// Takes the numbers of an envelope out of what a person or the log is told of it; outcomes keep the gateway's words.
pub(super) fn conceal_numbers(reply: &mut GatewayReply, envelope: &Envelope) {
    let Some(text) = signal_text(&mut reply.signal) else { return };
    for operation in envelope.operations() {
        if let Cow::Owned(hidden) = operation.phone.hide_in_text(text, &operation.phone.format_hint()) {
            *text = hidden;
        }
    }
}

/// The words of a signal.
fn signal_text(signal: &mut Signal) -> Option<&mut String> {
    match signal {
        Signal::Go => None,
        Signal::Warn(text)
        | Signal::Unreachable(text)
        | Signal::Broken(text)
        | Signal::Strange(text)
        | Signal::Slow { reason: text, .. }
        | Signal::Split(text)
        | Signal::Stop(_, text) => Some(text),
    }
}

fn conceal_spelling(reply: &mut GatewayReply, key: &str) {
    reply.outcomes.iter_mut().for_each(|outcome| match outcome {
        OperationOutcome::Accepted { answer: Some(text), .. } | OperationOutcome::Rejected { error: text } => {
            replace_key(text, key)
        }
        OperationOutcome::NotSent { reason } | OperationOutcome::InDoubt { reason } => {
            let mut text = reason.to_string();
            replace_key(&mut text, key);
            if *text != **reason {
                *reason = Arc::from(text);
            }
        }
        OperationOutcome::Accepted { .. } | OperationOutcome::Queued { .. } => {}
    });
    if let Some(text) = signal_text(&mut reply.signal) {
        replace_key(text, key);
    }
    if let Some(evidence) = &mut reply.evidence {
        replace_key(evidence, key);
        // A long body was cut somewhere, and maybe within the key.
        evidence.truncate(evidence.len() - count_key_prefix(evidence, key));
    }
}

/// How many bytes at the end of a text begin the key.
fn count_key_prefix(text: &str, key: &str) -> usize {
    key.char_indices().rev().map(|(at, _)| at).find(|at| text.ends_with(&key[..*at])).unwrap_or(0)
}

fn replace_key(text: &mut String, key: &str) {
    if text.contains(key) {
        *text = text.replace(key, CONCEALED);
    }
    if let Some(end) = find_cut(text) {
        text.replace_range(end - count_key_prefix(&text[..end], key)..end, "");
    }
}

#[cfg(test)]
mod tests {
    use super::super::cut::truncate;
    use super::*;
    use crate::gateway::StopCause;

    #[test]
    fn truncated_body_keeps_no_part_of_the_key() {
        for (body, kept) in [("x s3cr", "x "), ("x s", "x "), ("x s3cret/key", "x [key]"), ("x y", "x y")] {
            let mut reply = GatewayReply {
                outcomes: Vec::new(),
                signal: Signal::Go,
                evidence: Some(body.to_owned()),
                deviations: Vec::new(),
            };
            conceal_key(&mut reply, "s3cret/key");
            assert_eq!(reply.evidence.as_deref(), Some(kept));
        }
    }

    #[test]
    fn truncated_text_keeps_no_part_of_the_key() {
        let mut text = truncate(format!("{} s3cret/key", "x".repeat(494)));
        assert!(text.contains("s3cre"), "{text}");
        conceal_text(&mut text, "s3cret/key");
        assert_eq!(text, format!("{} … (cut, 505 characters)", "x".repeat(494)));
    }

    #[test]
    fn reply_texts_never_contain_the_key() {
        let quoting = || "wrong key `s3cret/key`".to_owned();
        let outcomes = vec![
            OperationOutcome::Accepted { msg_id: None, parts: None, answer: Some(quoting()) },
            OperationOutcome::Rejected { error: quoting() },
            OperationOutcome::NotSent { reason: quoting().into() },
            OperationOutcome::InDoubt { reason: quoting().into() },
        ];
        for signal in [
            Signal::Warn(quoting()),
            Signal::Slow { reason: quoting(), retry_after: None },
            Signal::Stop(StopCause::EnvelopeRefused, quoting()),
        ] {
            let mut reply =
                GatewayReply { outcomes: outcomes.clone(), signal, evidence: Some(quoting()), deviations: Vec::new() };
            conceal_key(&mut reply, "s3cret/key");
            let told = format!("{reply:?}");
            assert!(!told.contains("s3cret/key"), "{told}");
            assert_eq!(told.matches("wrong key `[key]`").count(), 6, "{told}");
        }
    }
}
