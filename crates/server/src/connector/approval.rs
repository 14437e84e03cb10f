//! Operator approvals: a confirmed call waits until the operator has seen and approved it in their own terminal.
//!
//! Pending calls exist only in this process's memory, and can be viewed through an endpoint on loopback. The ledger
//! stores the address of the endpoint and a keyed digest, which reveals nothing about the message.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher as _;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use axum::routing::get;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::error::ToolError;
use campaign_ledger::Approval;
use campaign_net::ConnectionLimits;
use campaign_net::http_client;
use campaign_runs::{Adapters, PendingRequest, short_digest, store_pending_request, use_approval};

/// The maximum time for which a call waits for an approval.
const APPROVAL_TIMEOUT: Duration = Duration::from_secs(3_600);
/// The maximum number of pending calls.
const MAX_PENDING: usize = 64;
/// The maximum number of known callers. When it is reached, all callers are forgotten, and their calls must be approved
/// again.
const MAX_CALLERS: usize = 4_096;
/// The timeout for viewing a pending call.
const VIEW_TIMEOUT: Duration = Duration::from_secs(5);

/// Calls that wait for the operator's approval.
#[derive(Clone, Debug)]
pub struct Approvals(Arc<PendingCalls>);

#[derive(Debug)]
struct PendingCalls {
    secret: [u8; 32],
    token: String,
    address: SocketAddr,
    /// Pending calls in human-readable form, with the time when each was added, by digest.
    waiting: Mutex<BTreeMap<String, (Instant, String)>>,
    /// A random number for each API key, by a keyed hash of the key. The random numbers keep approvals of different
    /// callers apart, and keys out of digests.
    callers: Mutex<HashMap<u64, u128>>,
    hasher: RandomState,
}

/// Whether a call is approved.
pub(super) enum ApprovalOutcome {
    /// The call is approved. The approval is used up.
    Approved(Approval),
    /// The call is not approved yet. The value is the answer for the caller.
    Pending(Value),
}

impl Approvals {
    /// Starts the endpoint for viewing pending calls, which runs until the shutdown.
    ///
    /// # Errors
    /// If no port can be opened.
    pub fn start(shutdown: impl Future<Output = ()> + Send + 'static) -> io::Result<Self> {
        let listener = campaign_net::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let token = format!("{:032x}{:032x}", rand::random::<u128>(), rand::random::<u128>());
        let (waiting, callers, hasher) = (Mutex::default(), Mutex::default(), RandomState::new());
        let calls = Arc::new(PendingCalls { secret: rand::random(), token, address, waiting, callers, hasher });
        let router = Router::new().route("/waiting/{digest}", get(show_pending)).with_state(Arc::clone(&calls));
        tokio::spawn(campaign_net::serve_connections(listener, router, ConnectionLimits::default(), shutdown));
        Ok(Self(calls))
    }

    /// Uses the operator's approval of a call, or makes the call pending. `call` contains every part of the call that
    /// the operator approves, and `preview` is the call in human-readable form.
    pub(super) async fn request_approval(
        &self,
        adapters: &Adapters,
        key: &SecretString,
        gateway: &str,
        call: &Value,
        preview: String,
    ) -> Result<ApprovalOutcome, ToolError> {
        let digest = self.0.digest_of(self.0.caller_id(key), gateway, call);
        if let Some(used) = use_approval(adapters.ledger.as_ref(), &digest).await? {
            self.0.lock_waiting().remove(&digest);
            return Ok(ApprovalOutcome::Approved(used));
        }
        if !self.0.add_pending(&digest, preview) {
            let error = "too many calls are waiting for the operator's approval";
            return Err(ToolError::retryable("rate_limited", error));
        }
        let (address, token) = (self.0.address.to_string(), self.0.token.clone());
        store_pending_request(adapters, &digest, PendingRequest { gateway: gateway.to_owned(), address, token })
            .await?;
        let digest = short_digest(&digest);
        Ok(ApprovalOutcome::Pending(json!({
            "pending": true,
            "digest": digest,
            "how_to": format!("nothing has been done yet: the connector's operator must approve this exact call with \
                               `campaign approve {digest}` in their own terminal. Tell the user. After the approval, \
                               call the tool again with the same arguments"),
        })))
    }
}

impl PendingCalls {
    /// The random identifier of the caller with this key.
    fn caller_id(&self, key: &SecretString) -> u128 {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= MAX_CALLERS {
            callers.clear();
        }
        *callers.entry(self.hasher.hash_one(key.expose_secret())).or_insert_with(rand::random)
    }

    /// The keyed digest that identifies a call. JSON delimits the parts of the call, so that two different calls cannot
    /// have the same text.
    fn digest_of(&self, caller: u128, gateway: &str, call: &Value) -> String {
        let mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("an HMAC key can have any length");
        let parts = json!([gateway, call]).to_string();
        let tag = mac.chain_update(caller.to_le_bytes()).chain_update(parts).finalize().into_bytes();
        tag.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn lock_waiting(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (Instant, String)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a pending call. Returns `false` if too many calls are already pending.
    fn add_pending(&self, digest: &str, preview: String) -> bool {
        let mut waiting = self.lock_waiting();
        waiting.retain(|_, (since, _)| since.elapsed() < APPROVAL_TIMEOUT);
        if waiting.len() >= MAX_PENDING && !waiting.contains_key(digest) {
            return false;
        }
        waiting.insert(digest.to_owned(), (Instant::now(), preview));
        true
    }
}

/// Shows a pending call to a client with the token.
async fn show_pending(
    State(calls): State<Arc<PendingCalls>>,
    Path(digest): Path<String>,
    headers: HeaderMap,
) -> (StatusCode, String) {
    let presented = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let has_token = presented.is_some_and(|token| bool::from(token.as_bytes().ct_eq(calls.token.as_bytes())));
    if !has_token {
        return (StatusCode::UNAUTHORIZED, String::new());
    }
    match calls.lock_waiting().get(&digest) {
        Some((_, preview)) => (StatusCode::OK, preview.clone()),
        None => (StatusCode::NOT_FOUND, String::new()),
    }
}

/// Fetches a pending call from another process; `None` if the call is no longer pending or the process does not answer.
pub async fn fetch_pending_call(pending: &PendingRequest, digest: &str) -> Option<String> {
    let client = http_client::builder().timeout(VIEW_TIMEOUT).build().ok()?;
    let request = client.get(format!("http://{}/waiting/{digest}", pending.address)).bearer_auth(&pending.token);
    let response = request.send().await.ok()?.error_for_status().ok()?;
    response.text().await.ok()
}
