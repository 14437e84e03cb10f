//! Signed approvals: a large run needs the signature of an approver whose key the sender does not have.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::{EARLIER, LATER, plan, run_in, use_daily_edition};
use crate::support::{Folder, Gateway, Terminal, campaign, live, phone};

/// Creates a key pair and returns the public key.
pub(crate) fn create_key(sale: &Folder, name: &str) -> String {
    let keys = sale.campaign(&["approve", "--new-key", name, "--json"]).exits(0).json();
    keys["public"].as_str().expect("a public half").to_owned()
}

/// Creates a live campaign to three recipients. More than two need Olha's approval.
fn guarded_campaign() -> Folder {
    let sale = live();
    let public = create_key(&sale, "olha");
    let rule = format!("local:\n  approval: {{ above: 2, by: {{ Olha: \"{public}\" }} }}\n");
    sale.replace("gateways.yaml", "local:\n", &rule);
    sale
}

/// Approves a plan with a key and returns the token.
fn sign(sale: &Folder, digest: &str, key: &str) -> String {
    let approved = sale.campaign(&["approve", digest, "--key", key, "--json"]).exits(0).json();
    assert_eq!((&approved["digest"], &approved["by"], &approved["up_to"]), (&json!(digest), &json!("Olha"), &json!(3)));
    approved["token"].as_str().expect("a token").to_owned()
}

#[test]
fn unapproved_large_run_is_refused_with_suggested_commands() {
    let sale = guarded_campaign();
    use_daily_edition(&sale);
    let refused = sale.run(&["--offline", "--yes"]).exits(2).says("the gateway `local` needs approval for more than 2");
    let digest = plan(&sale, &[]);
    refused
        .says(&format!("`campaign approve {} --key FILE`", &digest[..16]))
        .says(&format!("then repeat this command with `--plan {}`", &digest[..16]));
    sale.run(&["--offline", "--yes", "--plan", &digest]).exits(2).says("needs approval");
    sale.campaign(&["approve", &digest[..16]]).exits(2).says("the approval must be signed");
    sign(&sale, &digest, "olha.key");
    sale.campaign(&["approve", &digest, "--key", "olha.key"]).exits(2).says("has already been approved by Olha");
    run_in(&sale, EARLIER, &["--offline", "--plan", &digest]).exits(5).says("approved by Olha");
    // The run resumes without another approval, and without a plan it is confirmed as usual.
    run_in(&sale, EARLIER, &["--offline", "--plan", &digest]).exits(5);
    run_in(&sale, EARLIER, &["--offline", "--yes"]).exits(5);
    sale.campaign(&["stop", "sale@1", "--for-good", "--yes"]).exits(0);
    run_in(&sale, LATER, &["--offline", "--yes", "--plan", &digest]).exits(2).says("needs approval");
}

#[test]
fn approval_rule_ignores_opted_out_recipients_on_resume() {
    let sale = guarded_campaign();
    sale.run(&["--offline", "--yes", "--limit", "2"]).exits(5);
    sale.run(&["--offline", "--yes"]).exits(2).says("needs approval for more than 2");
    let number = format!("+{}", phone(3));
    sale.campaign(&["suppress", "add", &number]).exits(0);
    sale.run(&["--offline", "--yes"]).exits(5);
    // The run no longer sends to this recipient, so it needs no approval when the opt-out ends.
    sale.campaign(&["suppress", "remove", &number, "--yes"]).exits(0);
    sale.run(&["--offline", "--yes"]).exits(5);
    let counts = sale.campaign(&["status", "sale", "--json"]).exits(5).json()["counts"].clone();
    assert_eq!(counts, json!({ "planned": 2, "skipped": 1 }));
}

#[test]
fn approval_needs_the_private_key_of_a_listed_approver() {
    let sale = guarded_campaign();
    let digest = plan(&sale, &[]);
    create_key(&sale, "sender");
    sale.campaign(&["approve", &digest, "--key", "sender.key"]).exits(2).says("does not belong to any approver");
    // An approval typed while the profile required no signature is not valid later.
    let profiles = std::fs::read_to_string(sale.path("gateways.yaml")).unwrap();
    let without_rule: String =
        profiles.lines().filter(|line| !line.contains("approval:")).map(|line| format!("{line}\n")).collect();
    sale.write("gateways.yaml", &without_rule);
    sale.campaign(&["approve", &digest, "--key", "sender.key"]).exits(2).says("has no `approval`");
    let typed = Terminal::start(sale.command(&["approve", &digest]));
    typed.shows("Type yes").types("yes");
    typed.finish().exits(0);
    sale.write("gateways.yaml", &profiles);
    sale.run(&["--offline", "--yes", "--plan", &digest]).exits(2).says("needs approval");
    // A run that began without a signed approval needs one to resume with more than two recipients.
    sale.write("gateways.yaml", &without_rule);
    sale.run(&["--offline", "--yes"]).exits(2).says("needs approval by Olha");
    let trusted = Terminal::start(sale.command(&["gateway", "trust", "local"]));
    trusted.shows("Type weaken").types("weaken");
    trusted.finish().exits(0);
    sale.run(&["--offline", "--yes"]).exits(5);
    sale.write("gateways.yaml", &profiles);
    sale.run(&["--offline", "--yes"]).exits(2).says("needs approval");
    sale.run(&["--offline", "--yes", "--limit", "2"]).exits(5);
}

#[test]
fn token_approves_one_run_of_its_plan_on_another_machine() {
    let sale = guarded_campaign();
    use_daily_edition(&sale);
    let digest = plan(&sale, &[]);
    let token = sign(&sale, &digest, "olha.key");
    let run_elsewhere_in = |zone: &str, options: &[&str]| {
        run_in(&sale, zone, &[&["--offline", "--yes", "--state-dir", "there"], options].concat())
    };
    let run_elsewhere = |options: &[&str]| run_elsewhere_in(EARLIER, options);
    run_elsewhere(&[]).exits(2).says("needs approval");
    let (payload, signature) = token.split_once('.').unwrap();
    for forged in [payload, &format!("{payload}.AAAA"), &format!("{payload}A.{signature}"), "nonsense"] {
        run_elsewhere(&["--approval", forged]).exits(2).says("this token is not valid");
    }
    run_elsewhere(&["--approval", &token, "--plan", "0123"]).exits(2).says(", not 0123");
    sale.replace("sale.yaml", "Hello", "Goodbye");
    run_elsewhere(&["--approval", &token]).exits(2).says("the text `channels[0].sms.message` changed");
    sale.replace("sale.yaml", "Goodbye", "Hello");
    run_elsewhere(&["--approval", &token]).exits(5).says("approved by Olha");
    run_elsewhere(&["--approval", &token]).exits(5);
    sale.campaign(&["stop", "sale@1", "--for-good", "--yes", "--state-dir", "there"]).exits(0);
    run_elsewhere_in(LATER, &["--approval", &token]).exits(2).says("needs approval");
}

#[test]
fn token_of_another_key_with_the_same_name_approves_nothing() {
    let sale = guarded_campaign();
    let digest = plan(&sale, &[]);
    let token = sign(&sale, &digest, "olha.key");
    let other = create_key(&sale, "other");
    let profiles = std::fs::read_to_string(sale.path("gateways.yaml")).unwrap();
    let (before, after) = profiles.split_once("Olha: \"").unwrap();
    sale.write("gateways.yaml", &format!("{before}Olha: \"{other}\"{}", after.split_once('"').unwrap().1));
    sale.run(&["--offline", "--approval", &token]).exits(2).says("this token is not valid");
    sale.run(&["--offline", "--yes", "--plan", &digest]).exits(2).says("needs approval");
}

#[test]
fn only_large_live_runs_need_approval() {
    let sale = guarded_campaign();
    sale.run(&["--gateway", "sandbox"]).exits(0);
    sale.run(&["--offline", "--yes", "--rows", "2-3"]).exits(5);
    let gateway = Gateway::accepting();
    let public = create_key(&sale, "taras");
    let local =
        campaign().through(&gateway).profile(&format!("approval: {{ above: 0, by: {{ T: \"{public}\" }} }}")).write();
    local.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 3);
}

#[test]
fn private_key_is_readable_only_by_its_owner_and_not_replaced() {
    let sale = live();
    let public = create_key(&sale, "olha");
    let mode = std::fs::metadata(sale.path("olha.key")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let line = std::fs::read_to_string(sale.path("olha.key")).unwrap();
    sale.campaign(&["approve", "--new-key", "olha"]).exits(2);
    assert_eq!(std::fs::read_to_string(sale.path("olha.key")).unwrap(), line);
    for name in ["", "../olha", "-x", "a b"] {
        sale.campaign(&["approve", &format!("--new-key={name}")]).exits(2);
    }
    let output = sale.campaign(&["approve", "--new-key", "petro"]).exits(0);
    assert!(output.stdout.contains("approval: { above: 1000, by: { petro: ed25519:"), "{}", output.details());
    let secret = line.trim().rsplit(':').next().unwrap();
    assert!(!public.contains(secret) && !output.stdout.contains(secret));
    let digest = plan(&sale, &[]);
    std::fs::set_permissions(sale.path("olha.key"), std::fs::Permissions::from_mode(0o644)).unwrap();
    sale.campaign(&["approve", &digest, "--key", "olha.key"]).exits(2).says("other users can read the file");
}

#[test]
fn weakening_an_approval_rule_needs_confirmation_at_a_terminal() {
    let sale = guarded_campaign();
    sale.run(&["--offline", "--yes"]).exits(2).says("needs approval");
    let profiles = std::fs::read_to_string(sale.path("gateways.yaml")).unwrap();
    let without_rule: String =
        profiles.lines().filter(|line| !line.contains("approval:")).map(|line| format!("{line}\n")).collect();
    sale.write("other.yaml", &without_rule);
    sale.write("raised.yaml", &profiles.replace("above: 2", "above: 500"));
    for gateways in ["other.yaml", "raised.yaml"] {
        let run_command = |arguments: &[&str]| sale.campaign(&[arguments, &["--gateways", gateways]].concat());
        let refused = run_command(&["run", "sale.yaml", "--offline", "--yes"]).exits(2);
        refused.says("needs approval by Olha").says("campaign gateway trust local");
        for command in [&["plan", "sale.yaml"][..], &["test", "sale.yaml", "--to", "+380501234567", "--yes"]] {
            run_command(command).exits(2).says("needs approval by Olha");
        }
        run_command(&["gateway", "trust", "local"]).exits(2).says("accept the change at a terminal");
        run_command(&["gateway", "trust", "local", "--yes"]).exits(2);
        run_command(&["run", "sale.yaml", "--offline", "--yes"]).exits(2);
    }
    let trust = ["gateway", "trust", "local", "--gateways", "other.yaml"];
    let cancelled = Terminal::start(sale.command(&trust));
    cancelled.shows("Type weaken").types("yes");
    cancelled.finish().exits(2);
    let accepted = Terminal::start(sale.command(&trust));
    accepted.shows("before approval by Olha").shows("now no approval").types("weaken");
    accepted.finish().exits(0);
    sale.run(&["--gateways", "other.yaml", "--offline", "--yes"]).exits(5);
    sale.run(&["--offline", "--yes"]).exits(2).says("needs approval");
    sale.run(&["--gateways", "other.yaml", "--offline", "--yes"]).exits(2).says("needs approval by Olha");
}
