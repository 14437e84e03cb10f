//! The revisions of the protocol.

use serde_json::{Map, Value};

/// The revision without a handshake: each message says by which it is to be read.
pub(in crate::connector) const MODERN: &str = "2026-07-28";
/// The revisions with a handshake, the newest first.
pub(in crate::connector) const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// The key of the revision among what a message says of itself.
pub(super) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The key of what the client is capable of.
pub(super) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// How a message is to be read and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connector) enum ProtocolEra {
    /// By [`MODERN`].
    Modern,
    /// By one of [`LEGACY`], or as the bare call of contract 4.4.
    Legacy,
}

impl ProtocolEra {
    /// The era of a message: what it says of itself decides, then the head, then what only one era knows.
    pub(super) fn of_message(head: Option<&str>, method: &str, params: &Map<String, Value>) -> Self {
        let meta = params.get("_meta");
        let says = |key| meta.and_then(|meta| meta.get(key)).is_some();
        let modern = says(VERSION) || says(CAPABILITIES) || !is_legacy(head) || method == "server/discover";
        if modern { ProtocolEra::Modern } else { ProtocolEra::Legacy }
    }
}

/// Whether the head of a message names no revision, or an old one.
pub(super) fn is_legacy(head: Option<&str>) -> bool {
    head.is_none_or(|version| LEGACY.contains(&version))
}
