//! JSON API for runs and schedules: token authentication, and answers without phone numbers.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::support::{Folder, Gateway, Server, campaign, http_get, phone};

const TOKEN: &str = "t0ken-of-the-stories-77";

fn write_token(sale: &Folder, token: &str, mode: u32) {
    sale.write("token", token);
    std::fs::set_permissions(sale.path("token"), Permissions::from_mode(mode)).expect("a mode");
}

/// Requests a path with this `Authorization` header.
fn get_json(server: &Server, path: &str, authorization: &str) -> (u16, Value) {
    let response = http_get(&server.address(), path, &[("Authorization", authorization)]);
    (response.status, serde_json::from_str(&response.body).unwrap_or(Value::Null))
}

#[test]
fn api_describes_runs_like_status_without_phone_numbers() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&[]).exits(0);
    write_token(&sale, TOKEN, 0o600);
    let server = Server::start(&sale, &["--token-file", "token"]);
    let bearer = format!("Bearer {TOKEN}");
    let (status, listed) = get_json(&server, "/api/runs", &bearer);
    let mut command_output = sale.campaign(&["status", "--json"]).json()["runs"][0].clone();
    command_output.as_object_mut().expect("an object").remove("exit");
    assert_eq!((status, &listed["runs"][0]), (200, &command_output));
    for name in ["sale@1", "sale"] {
        let (status, run) = get_json(&server, &format!("/api/runs/{name}"), &bearer);
        let mut command_output = sale.campaign(&["status", "sale", "--json"]).json();
        let members = command_output.as_object_mut().expect("an object");
        // Figures by channel would require reading every row.
        members.retain(|member, _| !["exit", "channels"].contains(&member.as_str()));
        assert_eq!((status, &run), (200, &command_output), "{name}");
        assert!((2..12).all(|row| !run.to_string().contains(&phone(row).to_string())), "{run}");
    }
    assert_eq!(get_json(&server, "/api/runs/other", &bearer).0, 404);
}

#[test]
fn api_and_command_describe_schedules_alike() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).top("timezone: UTC").top("schedule: { every: 1st 10:00 }").write();
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    write_token(&sale, TOKEN, 0o600);
    let server = Server::start(&sale, &["--token-file", "token"]);
    let (status, listed) = get_json(&server, "/api/schedules", &format!("Bearer {TOKEN}"));
    let command_output = sale.campaign(&["schedule", "list", "--json"]).json_list();
    assert_eq!((status, &listed["schedules"]), (200, &command_output));
    assert_eq!(listed["schedules"][0]["state"], "armed");
    assert_eq!(get_json(&server, "/api/schedules", "Bearer other").0, 401);
}

#[test]
fn api_and_metrics_need_the_current_token_from_the_file() {
    let sale = campaign().write();
    write_token(&sale, TOKEN, 0o600);
    let server = Server::start(&sale, &["--token-file", "token"]);
    let longer = format!("Bearer {TOKEN}x");
    let basic = format!("Basic {TOKEN}");
    for authorization in ["", "Bearer", "Bearer ", "Bearer t0ken", &longer, &basic, TOKEN] {
        assert_eq!(get_json(&server, "/api/runs", authorization).0, 401, "{authorization}");
    }
    assert_eq!(get_json(&server, "/api/runs", &format!("bearer {TOKEN}")).0, 200);
    write_token(&sale, "another-token-of-the-stories", 0o600);
    assert_eq!(get_json(&server, "/api/runs", &format!("Bearer {TOKEN}")).0, 401);
    assert_eq!(get_json(&server, "/api/runs", "Bearer another-token-of-the-stories").0, 200);
    let ended = server.end("TERM").exits(0);
    assert!(!ended.stdout.contains("token-of") && !ended.stderr.contains("token-of"), "{}", ended.details());
}

#[test]
fn api_needs_a_private_token_file() {
    let sale = campaign().write();
    assert_eq!(get_json(&Server::start(&sale, &[]), "/api/runs", &format!("Bearer {TOKEN}")).0, 404);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--token-file", "token"];
    write_token(&sale, TOKEN, 0o644);
    sale.campaign(&serve).exits(2).says("chmod 600");
    write_token(&sale, "short", 0o600);
    sale.campaign(&serve).exits(2).says("16 characters");
}
