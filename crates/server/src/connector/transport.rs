//! Transports of the connector: `POST /mcp` and `GET /health` over HTTP (contract 4.4), and lines on standard input
//! and output; also the configuration files of clients.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use axum::{Extension, Router};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::methods::handle_request;
use super::rpc::{ProtocolEra, RpcError, RpcHeaders, RpcMessage, RpcReply, error_reply, read_message};
use super::{Connector, MAX_CALLS, MAX_MESSAGE_BYTES};
use campaign_net::Hosts;

/// The time limit for receiving a request body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Access rules: host names, origins of web pages, and whether a call needs a key.
pub struct ConnectorAccess {
    /// The allowed host names.
    pub hosts: Hosts,
    /// Allowed origins of web pages, in addition to this machine.
    pub origins: Vec<String>,
    /// Whether calls over HTTP without a key get status 401, so that clients ask their users to log in.
    pub require_key: bool,
}

/// The state of the server.
struct ConnectorState {
    connector: Connector,
    access: ConnectorAccess,
    /// Permits for concurrent calls.
    calls: Semaphore,
}

/// The router of a connector with these access rules.
pub fn router(connector: Connector, access: ConnectorAccess) -> Router {
    let state = Arc::new(ConnectorState { connector, access, calls: Semaphore::new(MAX_CALLS) });
    Router::new()
        // Some clients use the printed address without a path.
        .route("/", any(post_mcp))
        .route("/mcp", any(post_mcp))
        .route("/health", get(get_health))
        .fallback(|| async { error_response(StatusCode::NOT_FOUND, "not found") })
        .layer(middleware::from_fn_with_state(Arc::clone(&state), check_host_and_origin))
        .with_state(state)
}

/// Rejects requests for other host names, and requests from web pages of other sites.
async fn check_host_and_origin(State(state): State<Arc<ConnectorState>>, request: Request, next: Next) -> Response {
    let mut answer = match state.access.is_allowed(request.headers()) {
        true => next.run(request).await,
        false => error_response(StatusCode::FORBIDDEN, "this host or origin is not allowed"),
    };
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

impl ConnectorAccess {
    /// Whether a request is allowed: its host name is allowed, and no web page of another site sent it.
    fn is_allowed(&self, headers: &HeaderMap) -> bool {
        self.hosts.allows(headers) && headers.get_all(ORIGIN).iter().all(|origin| self.is_own_origin(origin))
    }

    /// Whether an origin belongs to this machine or is allowed by the operator.
    fn is_own_origin(&self, origin: &HeaderValue) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        let host = origin.split_once("://").and_then(|(_, host)| host.parse::<Authority>().ok());
        let is_local = |host: Authority| self.hosts.is_own(host.as_str()) && !self.hosts.is_published(host.as_str());
        self.origins.iter().any(|allowed| allowed == origin) || host.is_some_and(is_local)
    }
}

async fn get_health(State(state): State<Arc<ConnectorState>>) -> Response {
    let domain = state.connector.account.host();
    json_response(
        StatusCode::OK,
        &json!({ "ok": true, "domain": domain, "send_enabled": state.connector.sending.is_some() }),
    )
}

async fn post_mcp(
    State(state): State<Arc<ConnectorState>>,
    Extension(peer): Extension<SocketAddr>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        let response = error_response(StatusCode::METHOD_NOT_ALLOWED, "only POST is allowed");
        return ([(ALLOW, HeaderValue::from_static("POST"))], response).into_response();
    }
    if let Err(wait) = state.connector.limits.charge_address(peer.ip()) {
        let seconds = HeaderValue::from(wait.as_secs() + 1);
        return ([(RETRY_AFTER, seconds)], error_response(StatusCode::TOO_MANY_REQUESTS, "too many calls"))
            .into_response();
    }
    let headers = &parts.headers;
    if !is_json(headers) {
        return error_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json");
    }
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let head = RpcHeaders { version: text("mcp-protocol-version"), method: text("mcp-method"), name: text("mcp-name") };
    let request = match read_message(Some(head), &body) {
        Ok(RpcMessage::Request(request)) => request,
        Ok(RpcMessage::NoReply) => return StatusCode::ACCEPTED.into_response(),
        Err(reply) => return reply_response(&reply),
    };
    let key = bearer_key(headers);
    if key.is_none() && state.access.require_key && request.method == "tools/call" {
        let response = error_response(StatusCode::UNAUTHORIZED, "Access denied");
        let challenge = HeaderValue::from_static("Bearer realm=\"campaign\"");
        return ([(WWW_AUTHENTICATE, challenge)], response).into_response();
    }
    let Ok(_permit) = state.calls.try_acquire() else {
        let busy = error_response(StatusCode::SERVICE_UNAVAILABLE, "too many calls at once");
        return ([(RETRY_AFTER, HeaderValue::from_static("1"))], busy).into_response();
    };
    reply_response(&handle_request(&state.connector, key, request).await)
}

/// Whether the content type of a body is JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type
        .and_then(|content_type| content_type.split(';').next())
        .is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case("application/json"))
}

/// The key in the `Authorization` header of a call (contract 5.3). Returns `None` if there is no bearer key.
fn bearer_key(headers: &HeaderMap) -> Option<SecretString> {
    let (scheme, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let key = key.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !key.is_empty()).then(|| key.to_owned().into())
}

async fn read_body(body: Body) -> Result<Vec<u8>, Response> {
    match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_MESSAGE_BYTES)).await {
        Ok(Ok(body)) => Ok(body.into()),
        Ok(Err(_)) => Err(error_response(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 256 KiB")),
        Err(_) => Err(error_response(StatusCode::REQUEST_TIMEOUT, "the body took longer than 10 s to arrive")),
    }
}

fn reply_response(reply: &RpcReply) -> Response {
    json_response(StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &reply.body)
}

/// An error response of the server itself.
fn error_response(status: StatusCode, reason: &str) -> Response {
    json_response(status, &json!({ "error": reason }))
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    let content_type: (HeaderName, HeaderValue) = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (status, [content_type], body.to_string()).into_response()
}

/// A line from a client.
enum StdioLine {
    Whole(Vec<u8>),
    /// A line longer than [`MAX_MESSAGE_BYTES`].
    TooLong,
}

/// Serves a client that started the program, with the operator's own key. After the last line or the shutdown, open
/// calls are finished.
///
/// # Errors
/// If the answers cannot be written.
pub async fn serve_stdio(
    connector: Connector,
    key: SecretString,
    input: impl AsyncBufRead + Unpin + Send + 'static,
    mut output: impl AsyncWrite + Unpin,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let connector = Arc::new(connector);
    let (sender, mut lines) = mpsc::channel(1);
    // A separate task reads, so that a partly read line is not lost when an answer is ready.
    tokio::spawn(read_lines(input, sender));
    let (mut answers, mut accepts_lines) = (JoinSet::new(), true);
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            line = lines.recv(), if accepts_lines && answers.len() < MAX_CALLS => match line {
                Some(line) => {
                    answers.spawn(answer_line(Arc::clone(&connector), key.clone(), line));
                }
                None => accepts_lines = false,
            },
            Some(answer) = answers.join_next() => match answer {
                Ok(Some(answer)) => {
                    output.write_all(format!("{answer}\n").as_bytes()).await?;
                    output.flush().await?;
                }
                Ok(None) => {}
                Err(panic) => tracing::error!("a call failed without a response: {panic}"),
            },
            () = &mut shutdown, if accepts_lines => accepts_lines = false,
            else => return Ok(()),
        }
    }
}

/// The answer to a line; `None` if the line needs no answer.
async fn answer_line(connector: Arc<Connector>, key: SecretString, line: StdioLine) -> Option<Value> {
    let message = match &line {
        StdioLine::Whole(line) => read_message(None, line),
        StdioLine::TooLong => Err(error_reply(
            None,
            ProtocolEra::Legacy,
            &RpcError::invalid_request("the message is larger than 256 KiB"),
        )),
    };
    match message {
        Ok(RpcMessage::Request(request)) => Some(handle_request(&connector, Some(key), request).await.body),
        Ok(RpcMessage::NoReply) => None,
        Err(response) => Some(response.body),
    }
}

/// Reads lines that are not blank, until the input ends or the receiver is dropped.
async fn read_lines(mut input: impl AsyncBufRead + Unpin, lines: mpsc::Sender<StdioLine>) {
    loop {
        let line = match next_line(&mut input).await {
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(error) => return tracing::error!("cannot read standard input: {error}"),
        };
        let is_blank = matches!(&line, StdioLine::Whole(line) if line.trim_ascii().is_empty());
        if !is_blank && lines.send(line).await.is_err() {
            return;
        }
    }
}

async fn next_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<StdioLine>> {
    let (mut line, limit) = (Vec::new(), MAX_MESSAGE_BYTES as u64 + 1);
    if (&mut *input).take(limit).read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    if line.ends_with(b"\n") || line.len() <= MAX_MESSAGE_BYTES {
        return Ok(Some(StdioLine::Whole(line)));
    }
    // The rest of the line is skipped in pieces, so that memory use stays bounded.
    while !line.is_empty() && !line.ends_with(b"\n") {
        line.clear();
        (&mut *input).take(limit).read_until(b'\n', &mut line).await?;
    }
    Ok(Some(StdioLine::TooLong))
}

/// The name of the connector in the configuration.
const SERVER_NAME: &str = "campaign";
/// The environment variable that contains the API key for calls.
const KEY_VARIABLE: &str = "CAMPAIGN_KEY";

/// An AI client, by the format of its configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssistantClient {
    /// Claude Code: `.mcp.json`.
    Claude,
    /// Cursor: `.cursor/mcp.json`.
    Cursor,
    /// Visual Studio Code: `.vscode/mcp.json`.
    VsCode,
    /// Any other client: only the entry.
    Generic,
}

/// The way in which a client connects.
#[derive(Clone, Debug)]
pub enum ClientEntry {
    /// The connector listens at this URL; the client connects to it.
    Http(String),
    /// The client starts the connector.
    Stdio {
        /// The program.
        command: String,
        /// The arguments of the program.
        arguments: Vec<String>,
        /// The secrets that are in environment variables. Clients pass on only the variables in their configuration.
        secrets: Vec<EntrySecret>,
    },
}

/// A secret of a connector, in an environment variable.
#[derive(Clone, Debug)]
pub struct EntrySecret {
    variable: String,
    /// The name in the configuration file of Visual Studio Code.
    id: String,
    /// The prompt with which Visual Studio Code asks for the secret.
    description: &'static str,
}

impl EntrySecret {
    /// The API key of the gateway, in the environment variable with this name.
    pub fn api_key(variable: String) -> Self {
        Self { variable, id: "campaign-key".to_owned(), description: "API key for the messaging gateway" }
    }

    /// A secret that signs or verifies webhook addresses. `index` is its position in the profile.
    pub fn hook(variable: String, index: usize) -> Self {
        let id = format!("campaign-hook-secret-{}", index + 1);
        Self { variable, id, description: "Webhook secret for the messaging gateway" }
    }
}

impl AssistantClient {
    /// Every client.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Cursor, Self::VsCode, Self::Generic];

    /// The client's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Generic => "generic",
        }
    }

    /// The client with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.name() == name)
    }

    /// The whole configuration file, with placeholders for the secrets.
    pub fn config_file(self, entry: ClientEntry) -> Value {
        let (entry, secrets) = self.render_entry(entry);
        match self {
            Self::Claude | Self::Cursor => json!({ "mcpServers": { SERVER_NAME: entry } }),
            // VS Code asks for each secret once and stores it with other passwords.
            Self::VsCode if !secrets.is_empty() => {
                let input = |EntrySecret { id, description, .. }: &EntrySecret| {
                    let kind = "promptString";
                    json!({ "type": kind, "id": id, "description": description, "password": true })
                };
                let inputs: Vec<Value> = secrets.iter().map(input).collect();
                json!({ "inputs": inputs, "servers": { SERVER_NAME: entry } })
            }
            Self::VsCode => json!({ "servers": { SERVER_NAME: entry } }),
            Self::Generic => entry,
        }
    }

    /// Renders the server entry of the file (contract 4.4), and returns the secrets in the entry.
    fn render_entry(self, entry: ClientEntry) -> (Value, Vec<EntrySecret>) {
        match entry {
            ClientEntry::Http(url) => {
                let key = EntrySecret::api_key(KEY_VARIABLE.to_owned());
                let bearer = format!("Bearer {}", self.placeholder(&key));
                (json!({ "type": "http", "url": url, "headers": { "Authorization": bearer } }), vec![key])
            }
            ClientEntry::Stdio { command, arguments, secrets } => {
                let mut entry = json!({ "type": "stdio", "command": command, "args": arguments });
                for secret in &secrets {
                    entry["env"][&secret.variable] = self.placeholder(secret).into();
                }
                (entry, secrets)
            }
        }
    }

    /// The placeholder for a secret: the client's syntax for an environment variable or a password.
    fn placeholder(self, EntrySecret { variable, id, .. }: &EntrySecret) -> String {
        match self {
            Self::Claude | Self::Generic => format!("${{{variable}}}"),
            Self::Cursor => format!("${{env:{variable}}}"),
            Self::VsCode => format!("${{input:{id}}}"),
        }
    }
}
