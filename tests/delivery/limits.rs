//! Rate limit of a run compared with the rate limit of the gateway.

use serde_json::json;

use crate::support::{Folder, SandboxProcess, campaign};

/// Runs a campaign in envelopes of ten against a sandbox that accepts 20 operations per second. Returns the number of
/// throttled envelopes.
///
/// The sandbox allows a burst of one envelope plus half a second of the rate, because envelopes can be late on a busy
/// machine.
fn count_throttled(rate: &str, recipients: usize) -> usize {
    let scenario = Folder::new(false);
    scenario.write("scenario.yaml", "limits: { rate: 20/s, burst: 20 }\n");
    let sandbox = SandboxProcess::start_with(&["--scenario", &scenario.path("scenario.yaml").display().to_string()]);
    let sale = campaign().to(recipients).batches_of(10).delivery(&format!("rate: {rate}")).through(&sandbox);
    let sale = sale.profile("rate: 1000/s").profile("trust_status: [429]").write();
    let summary = sale.run(&["--json"]).exits(0).json();
    assert_eq!(summary["counts"], json!({ "accepted": recipients }));
    assert!(sandbox.messages().values().all(|&messages| messages == 1));
    sandbox.journal().iter().filter(|line| line["error"] == "Too many operations").count()
}

#[test]
fn run_at_the_gateway_rate_is_never_throttled() {
    assert_eq!(count_throttled("20/s", 80), 0);
}

#[test]
fn run_at_twice_the_gateway_rate_slows_down_without_losses() {
    assert!(count_throttled("40/s", 120) > 0);
}
