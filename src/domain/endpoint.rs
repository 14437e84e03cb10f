//! Endpoints of the gateway.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The one host that stands for every loopback address, so that a sandbox may change its port.
pub const LOOPBACK: &str = "loopback";

/// The gateway's endpoint that a campaign is sent through (contract 4.1 and 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Endpoint {
    /// Answers each operation with a `msg_id`.
    #[default]
    Sync,
    /// Queues the envelope and answers with one `request_id`.
    Async,
}

impl Endpoint {
    /// The endpoint's name in campaign files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Endpoint::Sync => "sync",
            Endpoint::Async => "async",
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
