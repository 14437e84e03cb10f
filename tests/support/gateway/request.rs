//! HTTP requests received by the test gateway.

use std::io::{self, BufRead};
use std::time::Instant;

use serde_json::Value;

/// A complete request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The first line, such as `POST /api/json.php HTTP/1.1`.
    pub(crate) line: String,
    /// Header names in lower case, with their values.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The time of arrival.
    pub(crate) at: Instant,
}

impl Request {
    /// Reads a request; `None` if the client closed the connection first.
    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut headers = Vec::new();
        loop {
            let mut header = String::new();
            from.read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(0, |(_, length)| length.parse().expect("a length"));
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        Ok(Some(Self { line: line.trim_end().to_owned(), headers, body, at: Instant::now() }))
    }

    /// The values of a header.
    pub(crate) fn header(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(header, _)| header == name).map(|(_, value)| value.as_str()).collect()
    }

    /// The request path.
    pub(crate) fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    /// The body as JSON (contract 2.1), or null if it is not valid JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The operations in the body.
    pub(crate) fn operations(&self) -> Vec<Value> {
        self.json()["data"].as_array().cloned().unwrap_or_default()
    }

    /// The phone numbers of the operations.
    pub(crate) fn phones(&self) -> Vec<u64> {
        self.operations().iter().filter_map(|operation| operation["phone"].as_u64()).collect()
    }

    /// Whether the request only asks for the balance. `campaign` checks API keys with such requests.
    pub(crate) fn is_balance_check(&self) -> bool {
        let operations = self.operations();
        !operations.is_empty() && operations.iter().all(|operation| operation["type"] == "balance")
    }

    /// Whether the request only asks for message statuses.
    pub(crate) fn is_status_inquiry(&self) -> bool {
        let operations = self.operations();
        !operations.is_empty() && operations.iter().all(|operation| operation["type"] == "status")
    }
}
