//! The bytes of the platform's answers (contract 2.2, 2.3 and 7), right and wrong ones.

use std::time::Duration;

use super::fallback::Report;
use super::plan::Fault;
use crate::gateway::Exchange;

/// What the platform did about one operation.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) id: u64,
    /// The identifier that the platform gave it, or its words of refusal.
    pub(super) done: Result<u64, &'static str>,
}

/// How items are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ids {
    Numbers,
    Texts,
    /// No identifiers at all; code calls have none by the contract.
    None,
}

/// The items of a synchronous answer.
pub(super) fn items(items: &[Item], ids: Ids, code_call: bool, without_msg_id: bool) -> Exchange {
    let written: Vec<String> = items
        .iter()
        .map(|item| {
            let id = match ids {
                Ids::Numbers => format!(r#""id":{},"#, item.id),
                Ids::Texts => format!(r#""id":"{}","#, item.id),
                Ids::None => String::new(),
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
    body(&format!(r#"{{"success":true,"data":[{}]}}"#, written.join(",")))
}

/// What a fault of a whole answer looks like; nothing for a fault of single items.
pub(super) fn broken(fault: Fault, timeout: Duration, pick: u64, msg_id: u64) -> Option<Exchange> {
    let status = |status, retry_after, body: &str| {
        Some(Exchange::Answer { status, retry_after, body: body.as_bytes().to_vec() })
    };
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    match fault {
        Fault::NotConnected => Some(Exchange::NotConnected("connection refused".into())),
        Fault::Handshake => Some(Exchange::Handshake("the TLS handshake failed".into())),
        Fault::KeyRefused => Some(body(r#"{"success":false,"error":"Access denied"}"#)),
        Fault::EnvelopeRefused => Some(body(r#"{"success":false,"error":"Invalid message type"}"#)),
        Fault::Lost | Fault::Late => Some(Exchange::Broken("connection reset".into())),
        Fault::TimedOut | Fault::Silence => Some(Exchange::TimedOut(timeout)),
        Fault::Redirect => status(if pick.is_multiple_of(2) { 302 } else { 307 }, None, ""),
        Fault::Throttled => status(429, if pick.is_multiple_of(2) { None } else { seconds(pick % 9) }, "slow down"),
        Fault::ThrottledLong => status(429, seconds(601 + pick % 5_000), ""),
        Fault::Unavailable => status(503, None, "<html>busy</html>"),
        Fault::ServerError => status(if pick.is_multiple_of(2) { 500 } else { 404 }, None, "<html>oops</html>"),
        Fault::TooLong => Some(Exchange::TooLong { status: 200 }),
        Fault::Empty => Some(body("")),
        Fault::Truncated => Some(body(r#"{"success":true,"data":[{"succ"#)),
        Fault::UnclearSuccess => {
            let success = ["1", r#""true""#, "null"][pick as usize % 3];
            Some(body(&format!(r#"{{"success":{success},"data":[]}}"#)))
        }
        Fault::FalseWithMsgIds => {
            let data = format!(r#"[{{"success":true,"data":{{"msg_id":{msg_id}}}}}]"#);
            Some(body(&format!(r#"{{"success":false,"error":"No route","data":{data}}}"#)))
        }
        Fault::FalseWithoutError => Some(body(r#"{"success":false}"#)),
        Fault::TrueWithoutData => Some(body(r#"{"success":true}"#)),
        Fault::TooFew
        | Fault::TooMany
        | Fault::Foreign
        | Fault::Twice
        | Fault::NoMsgId
        | Fault::Reordered
        | Fault::NoIds
        | Fault::TextIds
        | Fault::SomeRejected
        | Fault::NoMoney => None,
    }
}

/// The answers to questions about messages.
pub(super) fn statuses(answers: &[(u64, Option<(u64, Report)>)]) -> Exchange {
    let written: Vec<String> = answers
        .iter()
        .map(|(id, known)| match known {
            Some((msg_id, Report { channel, status })) => {
                let channel = channel.map(|channel| format!(r#""type":"{channel}","#)).unwrap_or_default();
                format!(r#"{{"success":true,"data":{{"id":"{id}","msg_id":"{msg_id}",{channel}"status":"{status}"}}}}"#)
            }
            None => r#"{"success":false,"error":"no such message"}"#.to_owned(),
        })
        .collect();
    body(&format!(r#"{{"success":true,"data":[{}]}}"#, written.join(",")))
}

pub(super) fn body(text: &str) -> Exchange {
    Exchange::Answer { status: 200, retry_after: None, body: text.as_bytes().to_vec() }
}
