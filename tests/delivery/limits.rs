//! A gateway that counts by itself how much an account sends: the referee of our pace.

use serde_json::json;

use crate::support::{Folder, SandboxProcess, campaign};

/// Runs a campaign at a rate, in envelopes of ten, against a sandbox that takes 20 operations a second; gives how many
/// envelopes it turned away.
///
/// Its burst is an envelope and half a second of the rate: so late may one envelope arrive on a machine that is busy.
fn turned_away(rate: &str, people: usize) -> usize {
    let scenario = Folder::new(false);
    scenario.write("scenario.yaml", "limits: { rate: 20/s, burst: 20 }\n");
    let sandbox = SandboxProcess::start_with(&["--scenario", &scenario.path("scenario.yaml").display().to_string()]);
    let sale = campaign().to(people).batches_of(10).delivery(&format!("rate: {rate}")).through(&sandbox);
    let sale = sale.profile("rate: 1000/s").profile("trust_status: [429]").write();
    let summary = sale.run(&["--json"]).exits(0).json();
    assert_eq!(summary["counts"], json!({ "accepted": people }));
    assert!(sandbox.messages().values().all(|&messages| messages == 1));
    sandbox.journal().iter().filter(|line| line["error"] == "Too many operations").count()
}

#[test]
fn run_at_the_gateway_rate_is_never_throttled() {
    assert_eq!(turned_away("20/s", 80), 0);
}

#[test]
fn run_at_twice_the_gateway_rate_slows_down_and_loses_nothing() {
    assert!(turned_away("40/s", 120) > 0);
}
