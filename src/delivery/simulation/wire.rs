//! The bytes of the platform's answers (contract 2.2, 2.3 and 7), right and wrong ones.

use std::time::Duration;

use super::fallback::ChannelReport;
use super::plan::WorldFault;
use crate::gateway::HttpExchange;

/// What the platform did about one operation.
#[derive(Clone, Debug)]
pub(super) struct SimulatedItem {
    pub(super) id: u64,
    /// The identifier that the platform gave it, or its words of refusal.
    pub(super) done: Result<u64, &'static str>,
}

/// How items are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdSpelling {
    Numbers,
    Texts,
    /// No identifiers at all; code calls have none by the contract.
    None,
}

/// The items of a synchronous answer.
pub(super) fn write_items(
    items: &[SimulatedItem],
    ids: IdSpelling,
    code_call: bool,
    without_msg_id: bool,
) -> HttpExchange {
    let written: Vec<String> = items
        .iter()
        .map(|item| {
            let id = match ids {
                IdSpelling::Numbers => format!(r#""id":{},"#, item.id),
                IdSpelling::Texts => format!(r#""id":"{}","#, item.id),
                IdSpelling::None => String::new(),
            };
            match item.done {
                Err(error) => format!(r#"{{"success":false,"error":"{error}","data":{{{id}"x":0}}}}"#),
                Ok(_) if code_call => r#"{"success":true,"data":{"code":"0123","price":1.5}}"#.to_owned(),
                Ok(_) if without_msg_id => format!(r#"{{"success":true,"data":{{{id}"data":1,"parts":1}}}}"#),
                Ok(msg_id) => {
                    format!(r#"{{"success":true,"data":{{{id}"msg_id":{msg_id},"data":1,"parts":1}}}}"#)
                }
            }
        })
        .collect();
    answer_body(&format!(r#"{{"success":true,"data":[{}]}}"#, written.join(",")))
}

/// What a fault of a whole answer looks like; nothing for a fault of single items.
pub(super) fn broken_answer(fault: WorldFault, timeout: Duration, pick: u64, msg_id: u64) -> Option<HttpExchange> {
    let status = |status, retry_after, body: &str| {
        Some(HttpExchange::Answer { status, retry_after, body: body.as_bytes().to_vec() })
    };
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    match fault {
        WorldFault::NotConnected => Some(HttpExchange::NotConnected("connection refused".into())),
        WorldFault::Handshake => Some(HttpExchange::Handshake("the TLS handshake failed".into())),
        WorldFault::KeyRefused => Some(answer_body(r#"{"success":false,"error":"Access denied"}"#)),
        WorldFault::EnvelopeRefused => Some(answer_body(r#"{"success":false,"error":"Invalid message type"}"#)),
        WorldFault::Lost | WorldFault::Late => Some(HttpExchange::Broken("connection reset".into())),
        WorldFault::TimedOut | WorldFault::Silence => Some(HttpExchange::TimedOut(timeout)),
        WorldFault::Redirect => status(if pick.is_multiple_of(2) { 302 } else { 307 }, None, ""),
        WorldFault::Throttled => {
            status(429, if pick.is_multiple_of(2) { None } else { seconds(pick % 9) }, "slow down")
        }
        WorldFault::ThrottledLong => status(429, seconds(601 + pick % 5_000), ""),
        WorldFault::Unavailable => status(503, None, "<html>busy</html>"),
        WorldFault::ServerError => status(if pick.is_multiple_of(2) { 500 } else { 404 }, None, "<html>oops</html>"),
        WorldFault::TooLong => Some(HttpExchange::TooLong { status: 200 }),
        WorldFault::Empty => Some(answer_body("")),
        WorldFault::Truncated => Some(answer_body(r#"{"success":true,"data":[{"succ"#)),
        WorldFault::UnclearSuccess => {
            let success = ["1", r#""true""#, "null"][pick as usize % 3];
            Some(answer_body(&format!(r#"{{"success":{success},"data":[]}}"#)))
        }
        WorldFault::FalseWithMsgIds => {
            let data = format!(r#"[{{"success":true,"data":{{"msg_id":{msg_id}}}}}]"#);
            Some(answer_body(&format!(r#"{{"success":false,"error":"No route","data":{data}}}"#)))
        }
        WorldFault::FalseWithoutError => Some(answer_body(r#"{"success":false}"#)),
        WorldFault::TrueWithoutData => Some(answer_body(r#"{"success":true}"#)),
        WorldFault::TooFew
        | WorldFault::TooMany
        | WorldFault::Foreign
        | WorldFault::Twice
        | WorldFault::NoMsgId
        | WorldFault::Reordered
        | WorldFault::NoIds
        | WorldFault::TextIds
        | WorldFault::SomeRejected
        | WorldFault::NoMoney => None,
    }
}

/// The answers to questions about messages.
pub(super) fn write_statuses(answers: &[(u64, Option<(u64, ChannelReport)>)]) -> HttpExchange {
    let written: Vec<String> = answers
        .iter()
        .map(|(id, known)| match known {
            Some((msg_id, ChannelReport { channel, status })) => {
                let channel = channel.map(|channel| format!(r#""type":"{channel}","#)).unwrap_or_default();
                format!(r#"{{"success":true,"data":{{"id":"{id}","msg_id":"{msg_id}",{channel}"status":"{status}"}}}}"#)
            }
            None => r#"{"success":false,"error":"no such message"}"#.to_owned(),
        })
        .collect();
    answer_body(&format!(r#"{{"success":true,"data":[{}]}}"#, written.join(",")))
}

pub(super) fn answer_body(text: &str) -> HttpExchange {
    HttpExchange::Answer { status: 200, retry_after: None, body: text.as_bytes().to_vec() }
}
