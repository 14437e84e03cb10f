//! The connector for AI assistants (contract 1.8, 4.4, 5.3): the gateway as tools of the Model Context Protocol.
//!
//! - `http`: the door, `POST /mcp` and `GET /health`;
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
mod tool;
mod tools;

pub use entry::Client;
pub use http::router;

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

use crate::delivery::Interrupt;
use crate::door::Hosts;
use crate::runs::{Adapters, KeylessAccount};

/// The most calls that are under way at once.
const AT_ONCE: usize = 64;

/// Who is answered: by the names of the door, and the origins of pages.
pub struct Friends {
    /// The names that the door has.
    pub hosts: Hosts,
    /// Origins of pages besides those of this machine.
    pub origins: Vec<String>,
}

/// A connector to the gateway of a profile.
pub struct Connector {
    account: KeylessAccount,
    adapters: Adapters,
    /// What it can be asked to do, in the order in which that is listed.
    tools: Vec<tool::ReadyTool>,
    friends: Friends,
    /// Whether a call without a key is refused by HTTP, which has clients ask their users to log in.
    require_key: bool,
    limits: limits::Limits,
    places: Arc<Semaphore>,
    interrupt: watch::Receiver<Interrupt>,
}

impl Connector {
    /// A connector that answers these friends.
    #[must_use]
    pub fn new(
        account: KeylessAccount,
        adapters: Adapters,
        friends: Friends,
        require_key: bool,
        interrupt: watch::Receiver<Interrupt>,
    ) -> Self {
        let tools = tools::TOOLS.iter().map(tool::ReadyTool::of).collect();
        let (limits, places) = (limits::Limits::default(), Arc::new(Semaphore::new(AT_ONCE)));
        Self { account, adapters, tools, friends, require_key, limits, places, interrupt }
    }
}
