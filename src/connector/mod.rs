//! The connector for AI assistants (contract 1.8, 4.4, 5.3): the gateway as tools of the Model Context Protocol.
//!
//! - `http`: the door, `POST /mcp` and `GET /health`; `stdio`: the same for a client that started the program, a line each;
//! - `rpc`: the protocol in all its revisions, pure;
//! - `answer`: its methods, and the way of a call: key, limits, schema, tool, schema;
//! - `tool`: what a tool is; `tools`: each of them in a file; `arguments`, `error`: what it takes, and why it has no result;
//! - `schema`: the check of arguments; `message_check`: that of texts;
//! - `confirmation`: the lock of a call that would send; `draft`: a message as a call says it; `sending`: its way, past the
//!   operator's limits; `recent`: what was sent lately;
//! - `campaigns`: the campaigns of a folder as tools, besides those of the account;
//! - `approval`: the lock that opens at the operator's terminal;
//! - `caller`: the account that the key of a call opens; `limits`: how often it may call;
//! - `access`: what a key may ask before the gateway accepted it; `known_keys`: what the gateway said of keys lately;
//! - `entry`: what a person writes into a program of an assistant.
//!
//! The key of a call goes to the gateway of the profile and nowhere else: it is in no log, no ledger, and gone with the call.

mod access;
mod answer;
mod approval;
mod arguments;
mod caller;
mod campaigns;
mod confirmation;
mod draft;
mod entry;
mod error;
mod http;
mod known_keys;
mod limits;
mod message_check;
mod recent;
mod rpc;
mod schema;
mod sending;
mod stdio;
mod tool;
mod tools;

pub use approval::{Approvals, view_pending_call};
pub use campaigns::{Campaigns, SuggestedCommand};
pub use entry::{AssistantClient, ClientEntry};
pub use http::{ConnectorAccess, router};
pub use sending::SendPolicy;
pub use stdio::serve_stdio;

use std::num::NonZeroU32;
use std::sync::Arc;

use tokio::sync::watch;

use crate::delivery::Interrupt;
use crate::runs::{Adapters, KeylessAccount};

/// The most calls that are under way at once.
const MAX_CALLS: usize = 64;
/// The largest message of a client, in bytes.
const MAX_MESSAGE_BYTES: usize = 256 * 1024;

/// A connector to the gateway of a profile.
pub struct Connector {
    account: KeylessAccount,
    access: Arc<access::KeyAccess>,
    adapters: Adapters,
    /// The most lookups that go through the profile within an hour.
    lookups_per_hour: NonZeroU32,
    /// What it can be asked to do, in the order in which that is listed.
    tools: Vec<tool::ReadyTool>,
    /// What may be sent; nothing unless the operator switched it on.
    sending: Option<Arc<SendPolicy>>,
    campaigns: Option<Arc<Campaigns>>,
    limits: limits::CallLimits,
    interrupt: watch::Receiver<Interrupt>,
}

impl Connector {
    /// A connector to this account, through which only what is allowed is sent, and so many numbers an hour are looked up.
    #[must_use]
    pub fn new(
        account: KeylessAccount,
        adapters: Adapters,
        lookups_per_hour: NonZeroU32,
        sending: Option<SendPolicy>,
        interrupt: watch::Receiver<Interrupt>,
    ) -> Self {
        let acting = if sending.is_some() { tools::SEND_TOOLS.as_slice() } else { &[] };
        let tools = tools::READ_TOOLS.iter().chain(acting).map(tool::ReadyTool::new).collect();
        let access = access::KeyAccess::new(account.profile().rate.per_second());
        Self {
            account,
            access: Arc::new(access),
            adapters,
            lookups_per_hour,
            tools,
            sending: sending.map(Arc::new),
            campaigns: None,
            limits: limits::CallLimits::default(),
            interrupt,
        }
    }

    /// The same with the campaigns of a folder.
    #[must_use]
    pub fn with_campaigns(mut self, campaigns: Campaigns) -> Self {
        let acting = if self.sending.is_some() { campaigns::SEND_TOOLS.as_slice() } else { &[] };
        self.tools.extend(campaigns::READ_TOOLS.iter().chain(acting).map(tool::ReadyTool::new));
        Self { campaigns: Some(Arc::new(campaigns)), ..self }
    }

    /// What comes when no message is on its way any more and no call can send another, once nobody is answered.
    pub fn wait_until_idle(&self) -> impl Future<Output = ()> + use<> {
        let (sending, runs) =
            (self.sending.clone(), self.campaigns.as_ref().map(|campaigns| campaigns.wait_for_runs()));
        async move {
            if let Some(sending) = sending {
                sending.wait_until_sent().await;
            }
            if let Some(runs) = runs {
                runs.await;
            }
        }
    }
}
