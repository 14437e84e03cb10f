//! One paid operation at a time: `campaign gateway lookup`, `campaign gateway otp` and `campaign test`.

mod ending;
mod policy_of_tests;
mod refused;
mod tests_of_campaigns;

use serde_json::Value;

use crate::support::{Finished, Folder, KEY_VARIABLE, Reachable};

/// The number that is asked about.
const NUMBER: &str = "380501234567";

/// Both commands, with what their runs are called.
const BOTH: [(&str, &str); 2] = [("lookup", "gateway.lookup@1"), ("otp", "gateway.otp@1")];

/// A folder with the profile `local` for this gateway, and nothing else.
fn desk(gateway: &impl Reachable) -> Folder {
    let folder = Folder::new(true);
    let (base, key) = (gateway.base_url(), format!("{{ env: {KEY_VARIABLE} }}"));
    folder.write("gateways.yaml", &format!("local:\n  base_url: {base}\n  api_key: {key}\n"));
    folder
}

/// Gives the profile a rate.
fn with_rate(desk: &Folder, rate: &str) {
    let profile = std::fs::read_to_string(desk.path("gateways.yaml")).expect("the profile");
    desk.write("gateways.yaml", &format!("{profile}  rate: {rate}\n"));
}

/// Asks about the number.
fn ask(desk: &Folder, command: &str, arguments: &[&str]) -> Finished {
    desk.campaign(&[&["gateway", command, NUMBER], arguments].concat())
}

/// The runs as `campaign status` lists them for programs.
fn runs(desk: &Folder) -> Vec<Value> {
    desk.campaign(&["status", "--json"]).exits(0).json()["runs"].as_array().cloned().expect("a list")
}
