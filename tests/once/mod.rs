//! Single paid operations: `campaign gateway lookup`, `campaign gateway otp` and `campaign test`.

mod ending;
mod policy_of_tests;
mod refused;
mod tests_of_campaigns;

use serde_json::Value;

use crate::support::{Finished, Folder, KEY_VARIABLE, Reachable};

/// The phone number of the lookups.
const NUMBER: &str = "380501234567";

/// Both commands, with the names of their runs.
const COMMANDS: [(&str, &str); 2] = [("lookup", "gateway.lookup@1"), ("otp", "gateway.otp@1")];

/// A folder that contains only the profile `local` of this gateway.
fn profile_folder(gateway: &impl Reachable) -> Folder {
    let folder = Folder::new(true);
    let (base, key) = (gateway.base_url(), format!("{{ env: {KEY_VARIABLE} }}"));
    folder.write("gateways.yaml", &format!("local:\n  base_url: {base}\n  api_key: {key}\n"));
    folder
}

/// Sets the rate of the profile.
fn set_rate(folder: &Folder, rate: &str) {
    let profile = std::fs::read_to_string(folder.path("gateways.yaml")).expect("the profile");
    folder.write("gateways.yaml", &format!("{profile}  rate: {rate}\n"));
}

/// Runs one of the commands for the number.
fn run_command(folder: &Folder, command: &str, arguments: &[&str]) -> Finished {
    folder.campaign(&[&["gateway", command, NUMBER], arguments].concat())
}

/// The runs in `campaign status --json`.
fn runs(folder: &Folder) -> Vec<Value> {
    folder.campaign(&["status", "--json"]).exits(0).json()["runs"].as_array().cloned().expect("a list")
}
