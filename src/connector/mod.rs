//! The connector for AI assistants (contract 1.8, 4.4, 5.3): the gateway as tools of the Model Context Protocol.
//!
//! - `http`: the door, `POST /mcp` and `GET /health`; `stdio`: the same for a client that started the program, a line each;
//! - `rpc`: the protocol in all its revisions, pure;
//! - `answer`: its methods, and the way of a call: key, limits, schema, tool, schema;
//! - `tool`: what a tool is; `tools`: each of them in a file; `arguments`, `error`: what it takes, and why it has no result;
//! - `caller`: the account that the key of a call opens; `limits`: how often it may call;
//! - `entry`: what a person writes into a program of an assistant.
//!
//! The key of a call goes to the gateway of the profile and nowhere else: it is in no log, no ledger, and gone with the call.

mod answer;
mod arguments;
mod caller;
mod entry;
mod error;
mod http;
mod limits;
mod rpc;
mod stdio;
mod tool;
mod tools;

pub use entry::{Client, Entry};
pub use http::{Friends, router};
pub use stdio::converse;

use tokio::sync::watch;

use crate::delivery::Interrupt;
use crate::runs::{Adapters, KeylessAccount};

/// The most calls that are under way at once.
const AT_ONCE: usize = 64;
/// The largest message of a client, in bytes.
const LARGEST: usize = 256 * 1024;

/// A connector to the gateway of a profile.
pub struct Connector {
    account: KeylessAccount,
    adapters: Adapters,
    /// What it can be asked to do, in the order in which that is listed.
    tools: Vec<tool::ReadyTool>,
    limits: limits::Limits,
    interrupt: watch::Receiver<Interrupt>,
}

impl Connector {
    /// A connector to this account.
    #[must_use]
    pub fn new(account: KeylessAccount, adapters: Adapters, interrupt: watch::Receiver<Interrupt>) -> Self {
        let tools = tools::TOOLS.iter().map(tool::ReadyTool::of).collect();
        Self { account, adapters, tools, limits: limits::Limits::default(), interrupt }
    }
}
