//! Message templates: listed, created and deleted as in the contract, and never created or deleted twice automatically.

use serde_json::{Value, json};

use super::{account_gateway, folder, live_folder};
use crate::support::{Answer, Gateway, KEY, Request, note_on_failure, rejected};

/// The answer payloads of a gateway with one template of each kind.
fn template_payload(operation: &Value) -> Value {
    match operation["type"].as_str().unwrap_or_default() {
        "template/list" => json!([{ "id": 5, "name": "Sale", "template": "Hi,\n%name%", "count": "8 / 1",
            "datetime": "2026-11-21T10:00:00+02:00" }]),
        "template/create" => {
            json!({ "id": 6, "name": operation["name"], "template": operation["template"], "count": "2 / 1" })
        }
        "template/viber/list" => {
            json!([{ "id": 3, "template": "Вітаємо, %name%", "signature": "OlenaCo", "status": "approved" }])
        }
        "template/viber/create" => json!({ "id": 4, "status": "new" }),
        _ => json!({ "deleted": 1 }),
    }
}

fn operations(gateway: &Gateway) -> Vec<Value> {
    gateway.requests().iter().flat_map(Request::operations).collect()
}

#[test]
fn templates_are_listed_for_people_and_programs() {
    let gateway = account_gateway(template_payload);
    let folder = folder(&gateway);
    folder.campaign(&["gateway", "templates", "list"]).exits(0).says("Sale").says("%name%").says("8 / 1");
    let templates = folder.campaign(&["gateway", "templates", "list", "--json"]).exits(0).json();
    assert_eq!(templates["templates"], template_payload(&json!({ "type": "template/list" })));
    folder.campaign(&["gateway", "viber-templates", "list"]).exits(0).says("Вітаємо, %name%").says("approved");
    let templates = folder.campaign(&["gateway", "viber-templates", "list", "--json"]).exits(0).json();
    assert_eq!(templates["templates"], template_payload(&json!({ "type": "template/viber/list" })));
}

#[test]
fn template_is_created_and_deleted_with_contract_fields() {
    let gateway = account_gateway(template_payload);
    let folder = folder(&gateway);
    folder.write("text.txt", "\u{feff}Hi,\r\n%name%\n");
    folder.campaign(&["gateway", "templates", "create", "Sale", "--file", "text.txt"]).exits(0).says("id 6");
    folder.campaign(&["gateway", "templates", "delete", "5"]).exits(0).says("deleted the SMS template 5");
    let create = ["gateway", "viber-templates", "create", "--signature", "OlenaCo", "--text", "Hi", "--json"];
    let created = folder.campaign(&create).exits(0).json();
    assert_eq!((&created["template"]["id"], &created["template"]["status"]), (&json!(4), &json!("new")));
    folder.campaign(&["gateway", "viber-templates", "delete", "9", "--text", "Bye"]).exits(0);
    let deleted = folder.campaign(&["gateway", "viber-templates", "delete", "3", "--json"]).exits(0).json();
    assert_eq!((&deleted["deleted"], &deleted["id"]), (&json!(1), &json!(3)));
    let expected = [
        json!({ "type": "template/create", "name": "Sale", "template": "Hi,\n%name%" }),
        json!({ "type": "template/delete", "id": 5 }),
        json!({ "type": "template/viber/create", "signature": "OlenaCo", "template": "Hi" }),
        json!({ "type": "template/viber/delete", "id": 9, "template": "Bye" }),
        json!({ "type": "template/viber/list" }),
        json!({ "type": "template/viber/delete", "id": 3, "template": "Вітаємо, %name%" }),
    ];
    assert_eq!(operations(&gateway), expected);
    folder.campaign(&["gateway", "viber-templates", "delete", "8"]).exits(2).says("no Viber template 8");
    assert_eq!(operations(&gateway).len(), expected.len() + 1, "only the list is requested");
}

#[test]
fn unexecuted_template_change_is_never_reported_as_done() {
    for (answer, code, words) in [
        (Answer::items(|operation| rejected(operation, "Wrong name")), 3, "`Wrong name`"),
        (Answer::items(|_| json!({ "success": true, "data": { "deleted": 0 } })), 3, "deleted nothing"),
        (Answer::rejection("Access denied"), 7, "Access denied"),
    ] {
        let _case = note_on_failure(format!("case: {words}"));
        let gateway = Gateway::always(answer);
        let folder = folder(&gateway);
        folder.campaign(&["gateway", "templates", "delete", "5"]).exits(code).says(words);
        assert_eq!(gateway.requests().len(), 1);
    }
}

#[test]
fn template_change_without_an_answer_is_not_repeated() {
    let create = ["gateway", "templates", "create", "Sale", "--text", "Hi"];
    let delete = ["gateway", "viber-templates", "delete", "3", "--text", "Hi"];
    for (arguments, list) in [(&create[..], "templates list"), (&delete, "viber-templates list")] {
        for answer in [Answer::CloseRead, Answer::CutBody, Answer::status(500), Answer::status(200)] {
            let gateway = Gateway::always(answer);
            let folder = folder(&gateway);
            let ended = folder.campaign(arguments).exits(5).says("the change might have been made");
            let ended = ended.says(&format!("campaign gateway {list} --gateway local"));
            assert!(!ended.stderr.contains(KEY) && ended.stdout.is_empty(), "{}", ended.details());
            assert_eq!(gateway.requests().len(), 1, "{}", ended.details());
        }
    }
}

#[test]
fn live_account_is_changed_only_after_confirmation() {
    let gateway = Gateway::always(Answer::CloseRead);
    let folder = live_folder(&gateway);
    let commands = [
        &["gateway", "templates", "create", "Sale", "--text", "Hi"][..],
        &["gateway", "templates", "delete", "5"],
        &["gateway", "viber-templates", "create", "--signature", "OlenaCo", "--text", "Hi"],
        &["gateway", "viber-templates", "delete", "3"],
    ];
    for command in commands {
        folder.campaign(command).exits(2).says("--yes").says("production");
        folder.campaign(&[command, &["--json"]].concat()).exits(2).says("--yes");
    }
    assert!(gateway.requests().is_empty());
    folder.campaign(&[commands[0], &["--yes"]].concat()).exits(5);
    assert!(!gateway.requests().is_empty(), "confirmed, the request is sent");
}

#[test]
fn template_without_text_or_name_is_refused_before_any_request() {
    let gateway = account_gateway(template_payload);
    let folder = folder(&gateway);
    folder.write("blank.txt", " \n");
    for arguments in [
        &["templates", "create", "Sale"][..],
        &["templates", "create", "Sale", "--text", " "],
        &["templates", "create", "Sale", "--file", "blank.txt"],
        &["templates", "create", "Sale", "--file", "nowhere.txt"],
        &["templates", "create", "Sale", "--text", "Hi", "--file", "blank.txt"],
        &["templates", "create", " ", "--text", "Hi"],
        &["templates", "delete", "five"],
        &["viber-templates", "create", "--text", "Hi"],
        &["templates"],
    ] {
        folder.campaign(&[&["gateway"], arguments].concat()).exits(2);
    }
    assert!(gateway.requests().is_empty());
}
