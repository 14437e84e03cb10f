//! `campaign lsp`: a language server over standard input and output, for editors.
//!
//! One thread reads messages, another checks lists, and the main thread answers. Only messages of the protocol are
//! written to standard output. The server opens no ledger and makes no connections.

use std::io::{self, BufRead, ErrorKind, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidChangeWatchedFiles, DidCloseTextDocument, DidOpenTextDocument, DidSaveTextDocument, Exit,
    Notification as _, PublishDiagnostics,
};
use lsp_types::request::{
    CodeActionRequest, Completion, GotoDefinition, HoverRequest, Initialize, Request as _, Shutdown,
};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionParams, CodeActionProviderCapability, CompletionOptions,
    CompletionParams, GotoDefinitionParams, HoverParams, HoverProviderCapability, InitializeParams, InitializeResult,
    OneOf, PositionEncodingKind, SaveOptions, ServerCapabilities, ServerInfo, TextDocumentSyncCapability,
    TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use campaign_editor::{ColumnUnit, EditorSession, ListCheck, ListOutcome};
use campaign_runs::Profiles;

/// The time for which the text must be unchanged before it is checked.
const QUIET_PERIOD: Duration = Duration::from_millis(60);
/// The maximum delay of a check while the text keeps changing.
const MAX_DELAY: Duration = Duration::from_millis(180);
/// The maximum size of a message, in bytes.
const MAX_MESSAGE: usize = 64 << 20;
/// The maximum size of the header of a message, in bytes.
const MAX_HEADER: u64 = 16 << 10;
/// The stack size of the thread that checks lists, in bytes.
const STACK: usize = 8 << 20;

/// Runs the server until the editor ends it.
pub(super) fn run_language_server(context: &Context) -> Result<u8, CommandFailure> {
    let (events, incoming) = mpsc::channel();
    let (checks, queued_checks) = mpsc::channel();
    let failed = |error: io::Error| CommandFailure::new(exit::BUG, format!("cannot start a thread: {error}"));
    let reader = events.clone();
    thread::Builder::new().name("lsp-reader".into()).spawn(move || read_messages(&reader)).map_err(failed)?;
    let checker = thread::Builder::new().name("lsp-lists".into()).stack_size(STACK);
    checker.spawn(move || check_lists(&queued_checks, &events)).map_err(failed)?;
    let mut server =
        LanguageServer { profiles: context.profiles(), checks, state: ServerState::Started, changed: None };
    Ok(server.run(&incoming))
}

/// An event that the server handles.
enum Event {
    Message(Message),
    /// A message that is not valid JSON-RPC.
    Malformed(String),
    ListChecked(ListOutcome),
    /// The editor closed the stream.
    Closed,
}

/// The state of the protocol.
enum ServerState {
    /// The server has not received `initialize` yet.
    Started,
    Running(Box<EditorSession>),
    /// The server has received `shutdown`.
    ShutDown,
}

struct LanguageServer {
    profiles: Profiles,
    checks: Sender<ListCheck>,
    state: ServerState,
    /// The times at which the first and the last unchecked change arrived.
    changed: Option<(Instant, Instant)>,
}

/// The answer to a request: its result, or the code and the message of an error.
type Answer = Result<Value, (ErrorCode, String)>;

impl LanguageServer {
    /// Handles events until the editor sends `exit` or the input ends, and returns the exit code.
    fn run(&mut self, incoming: &Receiver<Event>) -> u8 {
        loop {
            let event = match self.changed {
                None => incoming.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((first, last)) => {
                    let due = (last + QUIET_PERIOD).min(first + MAX_DELAY);
                    incoming.recv_timeout(due.saturating_duration_since(Instant::now()))
                }
            };
            match event {
                Ok(Event::Message(Message::Request(request))) => self.handle_request(request),
                Ok(Event::Message(Message::Notification(notification))) => {
                    if notification.method == Exit::METHOD {
                        self.stop();
                        return if matches!(self.state, ServerState::ShutDown) { exit::SUCCESS } else { exit::BUG };
                    }
                    self.handle_notification(notification);
                }
                // The server sends no requests, so it expects no responses.
                Ok(Event::Message(Message::Response(_))) => {}
                Ok(Event::Malformed(reason)) => {
                    tracing::warn!("a message was not understood: {reason}");
                    write_parse_error();
                }
                Ok(Event::ListChecked(outcome)) => self.update_session(|session| session.accept(outcome)),
                Err(RecvTimeoutError::Timeout) => self.refresh(),
                Ok(Event::Closed) | Err(RecvTimeoutError::Disconnected) => {
                    self.stop();
                    return exit::BUG;
                }
            }
            // A long series of messages must not delay the findings.
            if self.changed.is_some_and(|(first, _)| first.elapsed() >= MAX_DELAY) {
                self.refresh();
            }
        }
    }

    fn handle_request(&mut self, request: Request) {
        let Request { id, method, params } = request;
        let answered = catch_unwind(AssertUnwindSafe(|| self.answer(&method, params)));
        let answer = answered.unwrap_or_else(|_| {
            tracing::error!("`{method}` failed because of a bug in `campaign`");
            Err((ErrorCode::InternalError, "internal error".to_owned()))
        });
        write_message(Message::Response(to_response(id, answer)));
    }

    fn answer(&mut self, method: &str, params: Value) -> Answer {
        if self.changed.is_some() {
            // The answer must match the current text.
            self.refresh();
        }
        if method == Initialize::METHOD {
            return self.initialize(parse_params(params)?);
        }
        if method == Shutdown::METHOD && matches!(self.state, ServerState::Running(_)) {
            self.stop();
            self.state = ServerState::ShutDown;
            return Ok(Value::Null);
        }
        let session = match &mut self.state {
            ServerState::Started => {
                return Err((ErrorCode::ServerNotInitialized, "the server is not initialized".to_owned()));
            }
            ServerState::ShutDown => {
                return Err((ErrorCode::InvalidRequest, "the server was shut down".to_owned()));
            }
            ServerState::Running(session) => session,
        };
        match method {
            HoverRequest::METHOD => {
                let params: HoverParams = parse_params(params)?;
                to_value(session.hover(&params.text_document_position_params))
            }
            Completion::METHOD => {
                let params: CompletionParams = parse_params(params)?;
                to_value(session.complete(&params.text_document_position))
            }
            CodeActionRequest::METHOD => {
                let params: CodeActionParams = parse_params(params)?;
                to_value(session.collect_fixes(&params))
            }
            GotoDefinition::METHOD => {
                let params: GotoDefinitionParams = parse_params(params)?;
                to_value(session.find_definition(&params.text_document_position_params))
            }
            other => Err((ErrorCode::MethodNotFound, format!("unknown method `{other}`"))),
        }
    }

    fn initialize(&mut self, params: InitializeParams) -> Answer {
        if !matches!(self.state, ServerState::Started) {
            return Err((ErrorCode::InvalidRequest, "the server is already initialized".to_owned()));
        }
        let offered = params.capabilities.general.and_then(|general| general.position_encodings).unwrap_or_default();
        let unit = match offered.contains(&PositionEncodingKind::UTF8) {
            true => ColumnUnit::Utf8,
            false => ColumnUnit::Utf16,
        };
        let session = EditorSession::new(self.profiles.clone(), unit, Timestamp::now);
        self.state = ServerState::Running(Box::new(session));
        let server_info =
            ServerInfo { name: "campaign".to_owned(), version: Some(env!("CARGO_PKG_VERSION").to_owned()) };
        to_value(InitializeResult { capabilities: capabilities(unit), server_info: Some(server_info) })
    }

    fn handle_notification(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        let ServerState::Running(session) = &mut self.state else { return };
        let handled = catch_unwind(AssertUnwindSafe(|| -> Result<bool, (ErrorCode, String)> {
            match method.as_str() {
                DidOpenTextDocument::METHOD => session.open(parse_params(params)?),
                DidChangeTextDocument::METHOD => session.change(parse_params(params)?),
                DidCloseTextDocument::METHOD => session.close(&parse_params(params)?),
                DidSaveTextDocument::METHOD | DidChangeWatchedFiles::METHOD => session.forget_files(),
                _ => return Ok(false),
            }
            Ok(true)
        }));
        match handled {
            Ok(Ok(false)) => {}
            Ok(Ok(true)) => {
                let now = Instant::now();
                self.changed = Some((self.changed.map_or(now, |(first, _)| first), now));
            }
            Ok(Err((_, reason))) => tracing::warn!("`{method}` was not understood: {reason}"),
            Err(_) => tracing::error!("`{method}` failed because of a bug in `campaign`"),
        }
    }

    /// Checks the documents, and publishes the findings.
    fn refresh(&mut self) {
        self.changed = None;
        let mut checks = Vec::new();
        self.update_session(|session| checks = session.refresh());
        for check in checks {
            // Sending cannot fail, because the checking thread ends only with the process.
            let _ = self.checks.send(check);
        }
    }

    /// Applies a change to the session, and publishes the diagnostics that it changed.
    fn update_session(&mut self, change: impl FnOnce(&mut EditorSession)) {
        let ServerState::Running(session) = &mut self.state else { return };
        let published = catch_unwind(AssertUnwindSafe(|| {
            change(session);
            session.take_diagnostics()
        }));
        match published {
            Ok(changed) => changed.into_iter().for_each(|params| {
                let notification = Notification::new(PublishDiagnostics::METHOD.to_owned(), params);
                write_message(Message::Notification(notification));
            }),
            Err(_) => tracing::error!("the documents could not be checked because of a bug in `campaign`"),
        }
    }

    fn stop(&mut self) {
        if let ServerState::Running(session) = &mut self.state {
            session.stop_list_checks();
        }
    }
}

fn capabilities(unit: ColumnUnit) -> ServerCapabilities {
    let save = TextDocumentSyncSaveOptions::SaveOptions(SaveOptions { include_text: Some(false) });
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::INCREMENTAL),
        save: Some(save),
        ..TextDocumentSyncOptions::default()
    };
    let triggers = [":", " ", "{", "|", "%", ",", "["];
    ServerCapabilities {
        position_encoding: Some(match unit {
            ColumnUnit::Utf8 => PositionEncodingKind::UTF8,
            ColumnUnit::Utf16 => PositionEncodingKind::UTF16,
        }),
        text_document_sync: Some(TextDocumentSyncCapability::Options(sync)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(triggers.map(str::to_owned).into()),
            ..CompletionOptions::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]),
            ..CodeActionOptions::default()
        })),
        ..ServerCapabilities::default()
    }
}

fn parse_params<T: DeserializeOwned>(params: Value) -> Result<T, (ErrorCode, String)> {
    serde_json::from_value(params).map_err(|error| (ErrorCode::InvalidParams, error.to_string()))
}

fn to_value(value: impl serde::Serialize) -> Answer {
    serde_json::to_value(value).map_err(|error| (ErrorCode::InternalError, error.to_string()))
}

fn to_response(id: RequestId, answer: Answer) -> Response {
    match answer {
        Ok(result) => Response { id, result: Some(result), error: None },
        Err((code, message)) => Response::new_err(id, code as i32, message),
    }
}

/// Writes a message. Errors are ignored: if the editor has exited, the input ends too, which ends the server.
fn write_message(message: Message) {
    let _ = message.write(&mut io::stdout().lock());
}

/// Writes a parse error for a message whose ID is unknown.
fn write_parse_error() {
    use std::io::Write as _;

    let (code, message) = (ErrorCode::ParseError as i32, "the message is not valid");
    let text = serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message } });
    let text = text.to_string();
    let mut output = io::stdout().lock();
    let _ = write!(output, "Content-Length: {}\r\n\r\n{text}", text.len()).and_then(|()| output.flush());
}

/// Reads messages until the end of the stream.
fn read_messages(events: &Sender<Event>) {
    let mut input = io::stdin().lock();
    loop {
        let event = match read_message(&mut input) {
            Ok(Some(Ok(message))) => Event::Message(message),
            Ok(Some(Err(error))) => Event::Malformed(error),
            // Without a valid header, it is unknown where the next message begins.
            Ok(None) | Err(_) => Event::Closed,
        };
        let is_end = matches!(event, Event::Closed);
        if events.send(event).is_err() || is_end {
            return;
        }
    }
}

/// Reads one message: `None` at the end of the stream, and an inner error if only the content is invalid.
fn read_message(input: &mut impl BufRead) -> io::Result<Option<Result<Message, String>>> {
    let invalid = |reason: &str| io::Error::new(ErrorKind::InvalidData, reason.to_owned());
    let mut length = None;
    let mut header = input.by_ref().take(MAX_HEADER);
    loop {
        let mut line = String::new();
        if header.read_line(&mut line)? == 0 {
            return if header.limit() == 0 { Err(invalid("the header is too long")) } else { Ok(None) };
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("the header has no colon"))?;
        if name.trim().eq_ignore_ascii_case("Content-Length") {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let length = length.filter(|length| *length <= MAX_MESSAGE).ok_or_else(|| invalid("no valid Content-Length"))?;
    let mut content = vec![0; length];
    input.read_exact(&mut content)?;
    // serde would also read an array as a message.
    if !content.trim_ascii_start().starts_with(b"{") {
        return Ok(Some(Err("the message is not an object".to_owned())));
    }
    // Only the position of the error is reported, because the content might be personal data.
    let describe_position = |error: serde_json::Error| format!("line {}, column {}", error.line(), error.column());
    Ok(Some(serde_json::from_slice(&content).map_err(describe_position)))
}

/// Checks queued lists one after another and sends the outcomes, until one of the two channels is closed.
fn check_lists(queue: &Receiver<ListCheck>, events: &Sender<Event>) {
    while let Ok(check) = queue.recv() {
        match catch_unwind(AssertUnwindSafe(|| check.run())) {
            Ok(Some(outcome)) => {
                if events.send(Event::ListChecked(outcome)).is_err() {
                    return;
                }
            }
            Ok(None) => {}
            Err(_) => tracing::error!("a list could not be checked because of a bug in `campaign`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the methods of the messages in a stream, and whether the stream ended cleanly.
    fn read_all(mut stream: &[u8]) -> (Vec<String>, bool) {
        let mut methods = Vec::new();
        loop {
            match read_message(&mut stream) {
                Ok(Some(Ok(Message::Notification(notification)))) => methods.push(notification.method),
                Ok(Some(Ok(_))) => methods.push("other".to_owned()),
                Ok(Some(Err(_))) => methods.push("malformed".to_owned()),
                Ok(None) => return (methods, true),
                Err(_) => return (methods, false),
            }
        }
    }

    fn frame(content: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{content}", content.len())
    }

    #[test]
    fn malformed_content_does_not_end_the_stream() {
        let valid = frame(r#"{"jsonrpc":"2.0","method":"initialized"}"#);
        let stream = format!("{valid}{}{}{valid}", frame("{"), frame("[1]"));
        let expected = ["initialized", "malformed", "malformed", "initialized"].map(str::to_owned);
        assert_eq!(read_all(stream.as_bytes()), (expected.into(), true));
    }

    #[test]
    fn invalid_header_ends_the_stream() {
        for header in [
            "no colon\r\n\r\n{}",
            "Content-Length: x\r\n\r\n{}",
            "Content-Length: 99999999999\r\n\r\n{}",
            "A: b\r\n\r\n",
        ] {
            assert_eq!(read_all(header.as_bytes()), (Vec::new(), false), "{header}");
        }
        assert_eq!(read_all("A".repeat(20_000).as_bytes()), (Vec::new(), false));
        assert_eq!(read_all(b"Content-Length: 5\r\n\r\n{}"), (Vec::new(), false));
        assert_eq!(read_all(b""), (Vec::new(), true));
    }
}
