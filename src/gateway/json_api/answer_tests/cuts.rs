//! Answers that end early.

use super::SentRequest;
use crate::domain::{Endpoint, OperationKind};

#[test]
fn truncated_answer_proves_nothing() {
    let message = r#"{"success":true,"data":{"id":101,"msg_id":7,"data":1,"parts":1}}"#;
    let odd = r#"{"data":{"msg_id":"8","id":"102"},"error":null,"success":true}"#;
    let lookup = r#"{"success":true,"data":{"phone":380501234500,"status":"DELIVERED"}}"#;
    let call = r#"{"success":true,"data":{"code":"0042","price":0.5}}"#;
    let listed = |items: &str| format!(r#"{{"success":true,"data":[{items}]}}"#);
    let way = |endpoint, kind, count| SentRequest { endpoint, kind, count };
    let table = [
        (way(Endpoint::Sync, OperationKind::Sms, 2), listed(&format!("{message},{odd}")), "aa"),
        (way(Endpoint::Sync, OperationKind::Hlr, 1), listed(lookup), "a"),
        (way(Endpoint::Sync, OperationKind::CallOtp, 1), listed(call), "a"),
        (way(Endpoint::Sync, OperationKind::Sms, 1), r#"{"success":false,"error":"Access denied"}"#.to_owned(), "n"),
        (way(Endpoint::Async, OperationKind::Viber, 2), r#"{"success":true,"request_id":"cf-ray-1"}"#.to_owned(), "qq"),
    ];
    for (sent, body, whole) in table {
        assert_eq!(sent.read_answer(200, body.as_bytes()).0, whole, "{body}");
        for cut in 0..body.len() {
            let (letters, _) = sent.read_answer(200, &body.as_bytes()[..cut]);
            assert_eq!(letters, "?".repeat(whole.len()), "{}", &body[..cut]);
        }
        for start in 1..body.len() {
            let (letters, _) = sent.read_answer(200, &body.as_bytes()[start..]);
            assert_eq!(letters, "?".repeat(whole.len()), "{}", &body[start..]);
        }
    }
}
