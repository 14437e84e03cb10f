//! What must not be shown: the API key, and whom the list names.

use serde_json::json;

use crate::support::{Answer, Finished, Folder, Gateway, KEY, campaign, phone, rejected};

/// Fails if the output holds the key, or the number of anybody on the list.
#[track_caller]
fn tells_nothing(run: &Finished) {
    let told = format!("{}{}", run.stdout, run.stderr);
    assert!(!told.contains(KEY), "the key is shown:\n{told}");
    for row in 2..40 {
        assert!(!told.contains(&phone(row).to_string()), "a number is shown:\n{told}");
    }
}

/// No file of the state folder but the frozen list and the ledger may hold a number, and none the key.
fn keeps_no_key(sale: &Folder) {
    let mut folders = vec![sale.path("state"), sale.path("results")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).expect("a file");
            let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
            assert!(!found, "the key is in {}", path.display());
        }
    }
}

/// What a gateway may say, the request itself included.
const SCRIPTS: &[fn() -> Vec<Answer>] = &[
    Vec::new,
    || vec![Answer::Accept, Answer::items(|operation| rejected(operation, "No route"))],
    || vec![Answer::CloseRead, Answer::CutBody, Answer::CutHead],
    || vec![Answer::refused("Access denied")],
    || vec![Answer::Accept, Answer::with(|request| json!({ "success": true, "data": [], "echo": request.json() }))],
    || vec![Answer::Accept, Answer::with(|request| json!({ "success": false, "error": request.json()["auth"] }))],
    || vec![Answer::Accept, Answer::items(|operation| rejected(operation, KEY))],
    || vec![Answer::Accept, Answer::with(|request| request.json()["auth"].clone())],
    || vec![Answer::status_with(307, &["Location: http://127.0.0.1:1/"])],
];

#[test]
fn neither_the_key_nor_a_number_is_shown_whatever_the_gateway_answers() {
    for script in SCRIPTS {
        for arguments in [&["-vv"][..], &["--json", "-vv"]] {
            let gateway = Gateway::answering(script());
            let sale = campaign().to(30).through(&gateway).write();
            tells_nothing(&sale.run(arguments));
            tells_nothing(&sale.run(arguments));
            tells_nothing(&sale.campaign(&["status", "sale", "-vv"]));
            keeps_no_key(&sale);
        }
    }
}

#[test]
fn a_list_that_is_refused_is_refused_without_its_numbers() {
    let gateway = Gateway::accepting();
    for list in [
        format!("phone,name\n{},\"open\n{},b\n", phone(2), phone(3)),
        format!("phone,name\n{},a,b\n", phone(2)),
        format!("phone,name\n{}77777,a\n{},b\n", phone(2), phone(3)),
        format!("phone,name\n{},a\n{},b\n", phone(2), phone(2)),
    ] {
        let sale = campaign().with_list(&list).recipients("duplicates: refuse").through(&gateway).write();
        let run = sale.run(&["-vv"]).exits(2);
        tells_nothing(&run);
    }
}
