//! Gateway accounts: profiles, balance, sender names, templates, and the check of a campaign before it is sent.

mod adding;
mod inquiries;
mod online;
mod templates;

use serde_json::{Value, json};

use crate::support::{Answer, Folder, Gateway, KEY_VARIABLE, Reachable as _};

/// A gateway whose answer to each operation has the payload for its `type`.
fn account_gateway(payload: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Gateway {
    Gateway::always(answer(payload))
}

/// An answer with a payload for each operation.
fn answer(payload: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Answer {
    Answer::items(move |operation| json!({ "success": true, "data": payload(operation) }))
}

/// A folder that contains only a profile of this gateway.
fn folder(gateway: &Gateway) -> Folder {
    let folder = Folder::new(true);
    folder.write("gateways.yaml", &profile("local", &gateway.base_url(), ""));
    folder
}

/// A folder with a profile for a host on the internet. Its proxy is this gateway, which records every request.
fn live_folder(gateway: &Gateway) -> Folder {
    let folder = Folder::new(true);
    let extra_lines = format!("  rate: 100/s\n  proxy: {}\n", gateway.base_url());
    folder.write("gateways.yaml", &profile("production", "https://gateway.invalid", &extra_lines));
    folder
}

fn profile(name: &str, base_url: &str, extra_lines: &str) -> String {
    format!("{name}:\n  base_url: {base_url}\n  api_key: {{ env: {KEY_VARIABLE} }}\n{extra_lines}")
}
