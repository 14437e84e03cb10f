//! Fuzz target for messages of AI assistants: each request gets one answer with its identifier, whatever the other
//! lines contain.

use std::fs;
use std::io::Cursor;
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

use campaign_engine::delivery::Interrupt;
use campaign_gateway::JsonApi;
use campaign_ledger::memory::{LedgerContents, MemoryLedger};
use campaign_manifest::{GatewaySearch, Profile, UnsavedTexts, load_gateways};
use campaign_runs::{Adapters, KeylessAccount, Profiles};
use campaign_server::connector::{Connector, serve_stdio};

/// The maximum number of lines. More lines take longer and find nothing new.
const MAX_LINES: usize = 16;
/// The code of an answer to a line that is not JSON (JSON-RPC 2.0, 5.1).
const PARSE_ERROR: i64 = -32700;

/// A profile whose gateway does not exist: no program listens on port 1 of this machine.
static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("gateways.yaml");
    let text = "local:\n  base_url: http://127.0.0.1:1\n  api_key: { env: KEY }\n  rate: 10/s\n";
    fs::write(&path, text).expect("a file");
    let loaded = load_gateways(&GatewaySearch {
        explicit: Some(path),
        campaign: None,
        configuration: None,
        unsaved: UnsavedTexts::default(),
    });
    let gateways = loaded.value.unwrap_or_else(|| panic!("profiles: {:?}", loaded.findings));
    gateways.find_profile("local").expect("a profile").clone()
});

/// Checks the answers to a client that sends these lines.
pub(super) fn check(data: &[u8]) {
    let is_blank = |line: &&[u8]| line.trim_ascii().is_empty();
    let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').filter(|line| !is_blank(line)).take(MAX_LINES).collect();
    let answers = super::wait_for(send_lines(lines.join(&b'\n')));
    assert!(answers.len() <= lines.len(), "{} answers to {} lines", answers.len(), lines.len());
    for answer in &answers {
        assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
        assert_ne!(answer.get("result").is_some(), answer.get("error").is_some(), "{answer}");
    }
    let messages: Vec<Option<Value>> = lines.iter().map(|line| serde_json::from_slice(line).ok()).collect();
    let unreadable = messages.iter().filter(|message| message.is_none()).count();
    let parse_errors = answers.iter().filter(|answer| answer["error"]["code"] == PARSE_ERROR).count();
    assert_eq!(parse_errors, unreadable, "unreadable lines and their answers");
    let count_answers = |id: &Value| answers.iter().filter(|answer| answer.get("id") == Some(id)).count();
    let has_single_id = |line: &&[u8]| count_ids(line) == 1;
    let unambiguous = lines.iter().zip(&messages).filter(|(line, _)| has_single_id(line));
    for id in unambiguous.filter_map(|(_, message)| message.as_ref()).filter_map(find_request_id) {
        let asked = messages.iter().flatten().filter(|message| message.get("id") == Some(id)).count();
        assert!(
            (1..=asked).contains(&count_answers(id)),
            "{} answers to {asked} requests with the id {id}",
            count_answers(id)
        );
    }
    for answer in &answers {
        let id = answer.get("id").filter(|id| !id.is_null());
        let is_ours = |id: &Value| messages.iter().flatten().any(|message| message.get("id") == Some(id));
        // If a line names its id twice, the two readers keep different ids.
        assert!(id.is_none_or(|id| is_ours(id) || lines.iter().any(|line| count_ids(line) > 1)), "made up: {answer}");
    }
}

/// The identifier that the answer to this message must have; `None` if the message might not get such an answer.
fn find_request_id(message: &Value) -> Option<&Value> {
    let id = message.get("id")?;
    let is_request = message["jsonrpc"] == "2.0" && message["method"].is_string();
    let has_params = message.get("params").is_none_or(|params| params.is_object() || params.is_null());
    // A repeated member makes a message invalid, which `Value` does not show.
    let is_simple = message.as_object()?.values().all(|value| !value.is_array());
    let identifies = id.is_string() || id.is_i64() || id.is_u64();
    (is_request && has_params && is_simple && identifies).then_some(id)
}

/// How often a line could name an identifier, including names with escapes.
fn count_ids(line: &[u8]) -> usize {
    line.windows(2).filter(|pair| pair == b"id" || pair == b"\\u").count()
}

/// Sends these lines to a connector and returns its answers.
async fn send_lines(lines: Vec<u8>) -> Vec<Value> {
    let ledger = Arc::new(MemoryLedger::new(LedgerContents::default(), || Timestamp::UNIX_EPOCH));
    let adapters = Adapters {
        process: "fuzz".to_owned(),
        state: std::env::temp_dir(),
        ledger,
        profiles: Profiles::default(),
        connect: JsonApi::new,
        input: || None,
        clock: || Timestamp::UNIX_EPOCH,
        name_view: Arc::new(|_, _| String::new()),
        observer: Arc::new(|_| {}),
    };
    let account = KeylessAccount::open(&adapters, &PROFILE, Duration::from_millis(200)).await;
    let account = account.unwrap_or_else(|error| panic!("an account: {error}"));
    let (_sender, interrupt) = watch::channel(Interrupt::None);
    let connector = Connector::new(account, adapters, NonZeroU32::MIN, None, interrupt);
    let mut output = Vec::new();
    let served = serve_stdio(connector, "key".into(), Cursor::new(lines), &mut output, std::future::pending());
    served.await.expect("memory takes every answer");
    let answers = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    answers.map(|line| serde_json::from_slice(line).expect("an answer is JSON")).collect()
}
