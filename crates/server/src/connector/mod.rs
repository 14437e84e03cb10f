//! MCP connector for AI assistants (contract 1.8, 4.4, 5.3): the gateway as tools of the Model Context Protocol.
//!
//! - `transport`: `POST /mcp` and `GET /health` over HTTP, standard input and output, and the configuration of clients;
//! - `rpc`: all revisions of the protocol, without I/O;
//! - `methods`: the protocol's methods, and the steps of a tool call;
//! - `tools`: the tools of the account; `campaigns`: the tools of a campaigns folder;
//! - `arguments`, `error`: arguments with their schemas, and tool errors;
//! - `draft`: messages as arguments, their checks and the confirmation;
//! - `sending`: sending within the operator's limits and without duplicates; `approval`: operator approvals;
//! - `access`: access by API key, and rate limits of callers.
//!
//! The API key of a call is sent only to the profile's gateway. It is never logged or stored.

mod access;
mod approval;
mod arguments;
mod campaigns;
mod draft;
mod error;
mod methods;
mod rpc;
mod sending;
mod tools;
mod transport;

pub use approval::{Approvals, fetch_pending_call};
pub use campaigns::{Campaigns, OperatorAdvice};
pub use sending::SendPolicy;
pub use transport::{AssistantClient, ClientEntry, ConnectorAccess, EntrySecret, router, serve_stdio};

use std::num::NonZeroU32;
use std::sync::Arc;

use tokio::sync::watch;

use campaign_engine::delivery::Interrupt;
use campaign_runs::{Adapters, KeylessAccount};

/// The maximum number of concurrent calls.
const MAX_CALLS: usize = 64;
/// The maximum size of a client's message, in bytes.
const MAX_MESSAGE_BYTES: usize = 256 * 1024;

/// A connector to the gateway of a profile.
pub struct Connector {
    account: KeylessAccount,
    access: Arc<access::KeyAccess>,
    adapters: Adapters,
    /// The maximum number of lookups per hour through the profile.
    lookups_per_hour: NonZeroU32,
    /// The tools, in the order in which they are listed.
    tools: Vec<tools::ReadyTool>,
    /// The rules for sending; `None` unless the operator enabled sending.
    sending: Option<Arc<SendPolicy>>,
    campaigns: Option<Arc<Campaigns>>,
    limits: access::CallLimits,
    interrupt: watch::Receiver<Interrupt>,
}

impl Connector {
    /// A connector to this account, with the operator's limits for messages and lookups.
    pub fn new(
        account: KeylessAccount,
        adapters: Adapters,
        lookups_per_hour: NonZeroU32,
        sending: Option<SendPolicy>,
        interrupt: watch::Receiver<Interrupt>,
    ) -> Self {
        let send_tools = if sending.is_some() { tools::SEND_TOOLS.as_slice() } else { &[] };
        let tools = tools::READ_TOOLS.iter().chain(send_tools).map(tools::ReadyTool::new).collect();
        let access = access::KeyAccess::new(account.profile().rate.per_second());
        Self {
            account,
            access: Arc::new(access),
            adapters,
            lookups_per_hour,
            tools,
            sending: sending.map(Arc::new),
            campaigns: None,
            limits: access::CallLimits::default(),
            interrupt,
        }
    }

    /// Adds the campaigns of a folder.
    #[must_use]
    pub fn with_campaigns(mut self, campaigns: Campaigns) -> Self {
        let send_tools = if self.sending.is_some() { campaigns::SEND_TOOLS.as_slice() } else { &[] };
        self.tools.extend(campaigns::READ_TOOLS.iter().chain(send_tools).map(tools::ReadyTool::new));
        Self { campaigns: Some(Arc::new(campaigns)), ..self }
    }

    /// Waits until no message or run is in progress, after the connector has stopped serving calls.
    pub fn wait_until_idle(&self) -> impl Future<Output = ()> + use<> {
        let (sending, runs) =
            (self.sending.clone(), self.campaigns.as_ref().map(|campaigns| campaigns.wait_for_runs()));
        async move {
            if let Some(sending) = sending {
                sending.wait_for_sends().await;
            }
            if let Some(runs) = runs {
                runs.await;
            }
        }
    }
}
