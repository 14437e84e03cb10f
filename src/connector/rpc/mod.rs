//! The protocol: JSON-RPC 2.0 in the revisions of the Model Context Protocol, and the contract's bare call (contract 4.4).
//!
//! - `revision`: which revisions there are, and by which a message is to be read;
//! - `json`: JSON in which no object names a member twice;
//! - `message`: what came, read and judged; `header` what its head repeats of it;
//! - `fault`: why a message is not understood;
//! - `reply`: what goes back.
//!
//! All of it is pure, and knows neither tools nor HTTP but for the status of an answer.

mod fault;
mod header;
mod json;
mod message;
mod reply;
mod revision;

pub(super) use fault::RpcError;
pub(super) use header::RpcHeaders;
pub(super) use message::{RpcMessage, RpcRequest, read_message};
pub(super) use reply::{RpcReply, error_reply, result_reply};
pub(super) use revision::{LEGACY, MODERN, ProtocolEra};
