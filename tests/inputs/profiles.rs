//! Gateway profiles: errors found before a connection is made.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Folder, Gateway, KEY, KEY_VARIABLE, Process, Reachable as _, campaign, note_on_failure};

use super::assert_refused;

/// A campaign whose profile has an internet host that is not trusted yet.
fn live_campaign(gateway: &Gateway) -> Folder {
    let sale = campaign().delivery("rate: 100/s").through(gateway).profile("rate: 100/s").write();
    sale.replace("gateways.yaml", &gateway.base_url(), "https://gateway.invalid");
    sale
}

#[test]
fn invalid_profile_is_reported_with_its_location_before_sending() {
    let gateway = Gateway::accepting();
    let base = gateway.base_url();
    let key = format!("{{ env: {KEY_VARIABLE} }}");
    for (right, wrong, words) in [
        ("base_url:", "bas_url:", &["gateways.yaml:2:3", "did you mean `base_url`?"][..]),
        (base.as_str(), "http://gateway.invalid", &["gateways.yaml:2:13", "https"]),
        (&base, "https://user:secret@gateway.invalid", &["gateways.yaml:2:13"]),
        (&base, "https://gateway.invalid", &["gateways.yaml:1:1", "rate"]),
        (&key, "literally-the-key", &["gateways.yaml:4:3", "api_key"]),
        (&key, "{ env: NO_SUCH_VARIABLE }", &["NO_SUCH_VARIABLE"]),
        ("local:", "loca:", &["did you mean `loca`?"]),
        ("local:", "sandbox:", &["gateways.yaml:1:1"]),
    ] {
        let _case = note_on_failure(format!("case: {wrong}"));
        let sale = campaign().through(&gateway).write();
        sale.replace("gateways.yaml", right, wrong);
        assert_refused(&sale, &gateway, words);
    }
    let run = {
        let sale = campaign().through(&gateway).write();
        sale.replace("gateways.yaml", &key, "literally-the-key");
        sale.run(&[]).exits(2)
    };
    assert!(!run.details().contains("literally-the-key"), "the misplaced key is shown");
}

#[test]
fn key_file_that_others_can_read_is_refused() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.replace("gateways.yaml", &format!("{{ env: {KEY_VARIABLE} }}"), "{ file: secrets/gateway.key }");
    sale.write("secrets/gateway.key", &format!("{KEY}\n"));
    let set_mode =
        |mode| fs::set_permissions(sale.path("secrets/gateway.key"), Permissions::from_mode(mode)).expect("set");
    set_mode(0o644);
    assert_refused(&sale, &gateway, &["secrets/gateway.key", "chmod 600"]);
    set_mode(0o600);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.requests()[0].json()["auth"], KEY);
}

#[test]
fn live_gateway_needs_confirmation() {
    let gateway = Gateway::accepting();
    let sale = live_campaign(&gateway);
    for arguments in [&[][..], &["--json"], &["--limit", "1"], &["--rows", "2"]] {
        sale.run(arguments).exits(2).says("--yes").says("recipient");
    }
    sale.campaign(&["status"]).exits(0).says("no runs yet");
    sale.run(&["--dry-run"]).exits(0);
}

#[test]
fn changed_host_is_refused_until_trusted() {
    let gateway = Gateway::accepting();
    let sale = live_campaign(&gateway);
    sale.run(&[]).exits(2).says("--yes");
    sale.replace("gateways.yaml", "gateway.invalid", "elsewhere.invalid");
    for arguments in [&[][..], &["--yes"]] {
        let run = sale.run(arguments).exits(2);
        run.says("gateway.invalid").says("elsewhere.invalid").says("campaign gateway trust local");
    }
    sale.campaign(&["gateway", "trust", "local"]).exits(0).says("elsewhere.invalid");
    sale.run(&[]).exits(2).says("--yes");
    sale.replace("gateways.yaml", "elsewhere.invalid", "gateway.invalid");
    sale.run(&["--yes"]).exits(2).says("campaign gateway trust local");
}

#[test]
fn run_above_the_recipient_limit_needs_the_up_to_option() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(30).through(&gateway).profile("limits: { recipients: 20 }").write();
    assert_refused(&sale, &gateway, &["--up-to 30"]);
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("recipients-limit").says("`--up-to 30`");
    sale.campaign(&["plan", "sale.yaml"]).exits(2).says("--up-to 30");
    sale.campaign(&["plan", "sale.yaml", "--up-to", "30"]).exits(0);
    sale.run(&["--yes", "--up-to", "29"]).exits(2);
    sale.run(&["--up-to", "30", "--limit", "1"]).exits(0);
    // A run that has begun needs the option no more.
    sale.campaign(&["check", "sale.yaml"]).exits(0);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 30);
}

/// A location of the profiles file, and the arguments and environment variables that point to it.
type Location = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

#[test]
fn profiles_are_found_in_every_documented_location() {
    let gateway = Gateway::accepting();
    let locations: [Location; 4] = [
        ("gateways.yaml", &[], &[]),
        ("elsewhere/profiles.yaml", &["--gateways", "elsewhere/profiles.yaml"], &[]),
        ("elsewhere/profiles.yaml", &[], &[("CAMPAIGN_GATEWAYS", "elsewhere/profiles.yaml")]),
        ("home/.config/campaign/gateways.yaml", &[], &[]),
    ];
    for (location, arguments, environment) in locations {
        let sale = campaign().to(1).through(&gateway).write();
        let profile = fs::read_to_string(sale.path("gateways.yaml")).expect("the profile");
        fs::remove_file(sale.path("gateways.yaml")).expect("removed");
        sale.write(location, &profile);
        let mut command = sale.command(&[&["run", "sale.yaml"], arguments].concat());
        command.envs(environment.iter().copied());
        Process::start(command).finish().exits(0);
    }
    assert_eq!(gateway.phones().len(), 4);
}

#[test]
fn unreadable_key_error_does_not_name_a_missing_profile_file() {
    let sale = campaign().through(&Gateway::accepting()).write();
    let profiles = fs::read_to_string(sale.path("gateways.yaml")).expect("the profile");
    let key = profiles.lines().find(|line| line.contains("api_key")).expect("a key");
    fs::remove_file(sale.path("gateways.yaml")).expect("removed");
    sale.write("g2.yaml", &profiles.replace(key, "  api_key: { file: nowhere.key }"));
    let refused = sale.run(&["--gateways", "g2.yaml"]).exits(2).says("nowhere.key").says("`api_key`");
    assert!(!refused.details().contains("gateways.yaml"), "{}", refused.details());
}

#[test]
fn invalid_profile_blocks_only_commands_that_use_it() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).profile("rate: 100000/s").write();
    let profiles = fs::read_to_string(sale.path("gateways.yaml")).expect("the profiles");
    sale.write(
        "gateways.yaml",
        &format!("{profiles}broken:\n  base_url: https://gateway.invalid\n  api_key: its-own-key\n"),
    );
    sale.run(&["--gateway", "broken"]).exits(2).says("gateways.yaml:8:3").says("error").says("api_key");
    sale.run(&["--gateway", "brken"]).exits(2).says("did you mean `broken`?");
    assert!(gateway.requests().is_empty());
    for arguments in [&["check", "sale.yaml"][..], &["gateway", "trust", "local"]] {
        let run = sale.campaign(arguments).exits(0);
        assert!(run.stderr.contains("warning"), "{}", run.details());
    }
    let run = sale.run(&[]).exits(0).says("gateways.yaml:8:3").says("warning");
    assert!(!run.details().contains("its-own-key"), "{}", run.details());
    assert_eq!(gateway.phones().len(), 3);
}

#[test]
fn check_warns_about_a_missing_api_key() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    let check = |name: &str| {
        let mut command = sale.command(&["check", "sale.yaml", "--json"]);
        command.env_remove(name);
        Process::start(command).finish().exits(0).json()["findings"].clone()
    };
    assert_eq!(check("ANOTHER"), serde_json::json!([]));
    let findings = check(KEY_VARIABLE);
    assert_eq!((findings[0]["rule"].as_str(), findings[0]["severity"].as_str()), (Some("api-key"), Some("warning")));
    assert!(findings[0]["message"].as_str().is_some_and(|message| message.contains(KEY_VARIABLE)), "{findings}");
}
