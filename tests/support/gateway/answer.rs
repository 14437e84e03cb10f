//! Scripted answers of the test gateway.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::Request;

/// Creates the body of an answer from the request.
type Body = dyn Fn(&Request) -> Value + Send + Sync;

/// The answer to one request.
pub(crate) enum Answer {
    /// Accepts every operation, as in the contract.
    Accept,
    /// Accepts every operation, but only after the story releases the answer.
    Held,
    /// A 200 with a body created from the request.
    Json(Box<Body>),
    /// Any status, additional header lines and body.
    Http { status: u16, headers: Vec<String>, body: Vec<u8> },
    /// Closes the connection before reading the request.
    CloseUnread,
    /// Reads the request and closes the connection.
    CloseRead,
    /// Reads the request and never answers.
    Silence,
    /// Closes the connection within the head of the answer.
    CutHead,
    /// Accepts the messages and closes the connection within the body of the answer.
    CutBody,
}

impl Answer {
    /// A 200 with a fixed body.
    pub(crate) fn json(body: Value) -> Self {
        Answer::Json(Box::new(move |_| body.clone()))
    }

    /// A 200 with a body created from the request.
    pub(crate) fn from_request(body: impl Fn(&Request) -> Value + Send + Sync + 'static) -> Self {
        Answer::Json(Box::new(body))
    }

    /// A 200 with one item per operation, created from the operation.
    pub(crate) fn items(item: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        Self::from_request(move |request| envelope(request.operations().iter().map(&item).collect()))
    }

    /// Accepts requests with one of these keys and denies all others.
    pub(crate) fn for_keys(keys: &'static [&'static str]) -> Self {
        Self::from_request(move |request| match keys.iter().any(|key| request.json()["auth"] == *key) {
            true => accepted_envelope(request),
            false => denied(),
        })
    }

    /// Rejects the envelope with this error (contract 7).
    pub(crate) fn rejection(error: &str) -> Self {
        Self::json(json!({ "success": false, "error": error }))
    }

    /// An HTTP status with an HTML body.
    pub(crate) fn status(status: u16) -> Self {
        Self::status_with(status, &[])
    }

    /// An HTTP status with additional header lines and an HTML body.
    pub(crate) fn status_with(status: u16, headers: &[&str]) -> Self {
        let headers = headers.iter().map(|&line| line.to_owned()).collect();
        Answer::Http { status, headers, body: b"<html>a page</html>".to_vec() }
    }

    /// The head and body as bytes; `None` for answers that send nothing.
    pub(super) fn bytes(&self, request: &Request) -> Option<Vec<u8>> {
        match self {
            Answer::Accept | Answer::Held => Some(ok(&accepted_envelope(request))),
            Answer::Json(body) => Some(ok(&body(request))),
            Answer::Http { status, headers, body } => Some(http(*status, headers, body)),
            Answer::CutHead => Some(b"HTTP/1.1 200 OK\r\nContent-Ty".to_vec()),
            Answer::CutBody => {
                let mut answer = ok(&accepted_envelope(request));
                answer.truncate(answer.len() - 12);
                Some(answer)
            }
            Answer::CloseUnread | Answer::CloseRead | Answer::Silence => None,
        }
    }

    /// Whether the connection is closed after this answer.
    pub(super) fn closes(&self) -> bool {
        matches!(self, Answer::CloseUnread | Answer::CloseRead | Answer::CutHead | Answer::CutBody)
    }
}

/// The item of an accepted operation (contract 2.2 and 4.3).
pub(crate) fn accepted(operation: &Value) -> Value {
    static MSG_ID: AtomicU64 = AtomicU64::new(70_000_000);
    let msg_id = MSG_ID.fetch_add(1, Ordering::Relaxed);
    let data = match operation["type"].as_str().unwrap_or_default() {
        "status" => json!({ "id": operation["id"].to_string(), "msg_id": msg_id.to_string(), "type": "sms",
            "status": "ACCEPTED", "updated": "2026-11-21T10:00:00+02:00" }),
        "hlr" => json!({ "phone": operation["phone"], "status": "DELIVERED", "mccmnc": 25501, "ported": false }),
        "call/otp" => json!({ "code": "0042", "price": 0.5 }),
        _ => json!({ "id": operation["id"], "msg_id": msg_id, "data": 1, "parts": 1 }),
    };
    json!({ "success": true, "data": data })
}

/// The item of a rejected operation (contract 7).
pub(crate) fn rejected(operation: &Value, error: &str) -> Value {
    json!({ "success": false, "error": error, "data": { "id": operation["id"] } })
}

fn envelope(items: Vec<Value>) -> Value {
    json!({ "success": true, "data": items })
}

/// The answer to an envelope with an unknown key (contract 7).
pub(crate) fn denied() -> Value {
    json!({ "success": false, "error": "Access denied" })
}

/// The answer to an accepted envelope, by endpoint (contract 4.1 and 4.2).
pub(crate) fn accepted_envelope(request: &Request) -> Value {
    match request.path() {
        "/v1/json" => json!({ "success": true, "request_id": "cf-ray-8d5e2f-KBP" }),
        _ => envelope(request.operations().iter().map(accepted).collect()),
    }
}

fn ok(body: &Value) -> Vec<u8> {
    http(200, &["Content-Type: application/json".to_owned()], body.to_string().as_bytes())
}

fn http(status: u16, headers: &[String], body: &[u8]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Story\r\nContent-Length: {}\r\n", body.len());
    for header in headers {
        head += header;
        head += "\r\n";
    }
    [head.as_bytes(), b"\r\n", body].concat()
}
