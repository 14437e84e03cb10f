//! Fuzz target for gateway answers, compared with the reference reader of the unit tests.

use campaign_core::domain::{Endpoint, MessageId, OperationKind, OperationOutcome, Phone, Row};
use campaign_gateway::{AnswerRules, EncodedOperation, Envelope, HttpExchange, read_reply};

#[path = "../../crates/gateway/src/json_api/tests/reference.rs"]
mod reference;

/// A request: what was sent, and to which endpoint.
#[derive(Clone, Copy, Debug)]
struct SentRequest {
    endpoint: Endpoint,
    kind: OperationKind,
    count: u32,
}

const STATUSES: [u16; 8] = [200, 200, 200, 200, 302, 429, 503, 520];

/// Checks the outcomes that are read from an answer. The first byte selects the request and its size, the second byte
/// the HTTP status; the rest is the body.
pub(super) fn check(data: &[u8]) {
    let [request, status, body @ ..] = data else { return };
    let (endpoint, kind) = [
        (Endpoint::Sync, OperationKind::Sms),
        (Endpoint::Sync, OperationKind::Hlr),
        (Endpoint::Sync, OperationKind::CallOtp),
        (Endpoint::Async, OperationKind::Viber),
    ][usize::from(request % 4)];
    let sent = SentRequest { endpoint, kind, count: u32::from(request / 4 % 3) + 1 };
    let status = STATUSES[usize::from(status % 8)];
    if reference::has_number_out_of_range(body) {
        return;
    }
    let claimed = read_letters(sent, status, body);
    let (proven, _) = reference::judge(sent, status, body);
    assert_eq!(claimed.len(), sent.count as usize, "an outcome is missing: {sent:?}");
    for (claimed, proven) in claimed.chars().zip(proven.chars()) {
        let body = String::from_utf8_lossy(body);
        assert!(claimed == '?' || claimed == proven, "{sent:?}: {claimed} is claimed, {proven} proven, by {body}");
    }
}

/// Reads an answer. Returns a letter per outcome: `a` is accepted, `q` queued, `r` rejected, `n` not sent, and `?` in
/// doubt.
fn read_letters(sent: SentRequest, status: u16, body: &[u8]) -> String {
    let operation = |index: u32| EncodedOperation {
        row: Row::new(index + 2),
        id: MessageId::new(u64::from(index) + 101).expect("an identifier"),
        phone: Phone::new(380_501_234_500 + u64::from(index)).expect("a number"),
        kind: sent.kind,
        chain: sent.kind.into(),
        digest: [0; 8],
        json: Vec::new(),
        cost: None,
        leave_before: None,
        repeats: false,
    };
    let envelope = Envelope::new((0..sent.count).map(operation).collect()).expect("operations");
    let rules = AnswerRules { trust_status: vec![503, 520], fatal_errors: vec!["Not enough money".to_owned()] };
    let exchange = HttpExchange::Answer { status, retry_after: None, body: body.to_vec() };
    let letter = |outcome: &OperationOutcome| match outcome {
        OperationOutcome::Accepted { .. } => 'a',
        OperationOutcome::Queued { .. } => 'q',
        OperationOutcome::Rejected { .. } => 'r',
        OperationOutcome::NotSent { .. } => 'n',
        OperationOutcome::InDoubt { .. } => '?',
    };
    read_reply(&rules, sent.endpoint, &envelope, &exchange).outcomes.iter().map(letter).collect()
}
