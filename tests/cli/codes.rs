//! Exit codes of commands and their precedence.

use serde_json::json;

use crate::support::{Answer, Finished, Folder, Gateway, Results, campaign, in_files, phone, rejected, until};

/// Creates a gateway that gives this answer to the second request.
fn gateway_answering_second(answer: Answer) -> Gateway {
    Gateway::answering([Answer::Accept, answer])
}

fn rejection() -> Answer {
    Answer::items(|operation| rejected(operation, "No route"))
}

/// Runs a campaign through `gateway` with one operation per request.
fn run(gateway: &Gateway, arguments: &[&str]) -> (Folder, Finished) {
    let sale = campaign().batches_of(1).one_at_a_time().through(gateway).write();
    let run = sale.run(arguments);
    (sale, run)
}

#[test]
fn run_and_status_exit_with_the_code_of_the_outcome() {
    for (code, gateway, arguments) in [
        (0, Gateway::accepting(), &[][..]),
        (3, gateway_answering_second(rejection()), &[]),
        (4, gateway_answering_second(Answer::CloseRead), &[]),
        (5, gateway_answering_second(Answer::rejection("Invalid message type")), &[]),
        (7, Gateway::answering([Answer::rejection("Access denied")]), &[]),
    ] {
        let (sale, run) = run(&gateway, arguments);
        run.exits(code);
        // `status` exits with code 5 for a resumable run, whatever the exit code of the last command.
        let code = if code == 7 { 5 } else { code };
        sale.campaign(&["status", "sale@1"]).exits(code);
        sale.campaign(&["status", "sale", "--json"]).exits(code);
        sale.campaign(&["status", "sale.yaml", "-q"]).exits(code);
    }
}

#[test]
fn doubt_outweighs_rejections_and_a_stop_outweighs_both() {
    let mixed = || [Answer::Accept, rejection(), Answer::CloseRead];
    let gateway = Gateway::answering(mixed());
    run(&gateway, &["--keep-going"]).1.exits(4);
    let gateway = Gateway::answering(mixed());
    let sale = campaign().to(9).batches_of(1).one_at_a_time().through(&gateway).write();
    let paused = sale.run(&["--limit", "3", "--keep-going", "--json"]).exits(4).json();
    assert_eq!((&paused["stopped"], &paused["sent"], &paused["exit"]), (&json!("limit"), &json!(3), &json!(4)));
    sale.campaign(&["status", "sale"]).exits(5);
}

#[test]
fn run_that_ends_at_a_limit_or_row_selection_exits_0() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(9).through(&gateway).write();
    for (arguments, sent) in [(["--limit", "2"], 2), (["--rows", "4-6"], 3), (["--rows", "5"], 0)] {
        let output = sale.run(&[&arguments[..], &["--json"]].concat()).exits(0).json();
        assert_eq!((&output["stopped"], &output["sent"]), (&json!("limit"), &json!(sent)), "{output}");
    }
    assert_eq!(gateway.phones(), (2..7).map(phone).collect::<Vec<_>>());
}

#[test]
fn run_with_nothing_to_send_exits_0_and_explains_what_to_do() {
    let gateway = Gateway::accepting();
    let list = format!("phone,name\n{0},A\n{0},B\n{1},C\n", phone(2), phone(3));
    let sale = campaign().with_list(&list).through(&gateway).write();
    sale.run(&[]).exits(0);
    let before = std::fs::read(sale.results_file()).expect("results");
    let output = sale.run(&[]).exits(0).says("no recipients are left to send to").says("already sent in sale@1 (20");
    output
        .says(&sale.path("sale.yaml").canonicalize().expect("a path").display().to_string())
        .says("`edition`")
        .says("campaign run sale.yaml --again 2");
    let output = sale.run(&["--json"]).exits(0).json();
    assert_eq!((&output["sent"], &output["run"], &output["stopped"]), (&json!(0), &json!(null), &json!(null)));
    assert_eq!(std::fs::read(sale.results_file()).expect("results"), before);
    sale.campaign(&["run", "sale.yaml", "--again", "2", "--no-wait"]).exits(0);
    let monthly = campaign().to(2).top("edition: may").through(&gateway).write();
    monthly.run(&[]).exits(0);
    monthly.run(&[]).exits(0).says(
        "to send a new mailing, change the campaign's `edition`, or, if it contains the date, wait until the next day",
    );
}

#[test]
fn run_without_valid_recipients_still_has_results() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(2).through(&gateway).write();
    sale.run(&[]).exits(0);
    let sale =
        campaign().with_list("phone,name\n12,A\n13,B\n").recipients("max_invalid: 100%").through(&gateway).write();
    let output = sale.run(&["--json"]).exits(3).json();
    assert_eq!((&output["run"], &output["sent"]), (&json!("sale@1"), &json!(0)));
    assert_eq!(sale.results().states(), ["invalid"; 2]);
    sale.campaign(&["status", "sale"]).exits(3).says("finished");
    assert_eq!(gateway.phones().len(), 2);
}

#[test]
fn invalid_command_line_exits_2() {
    let sale = campaign().write();
    for arguments in [
        &["--no-such-option"][..],
        &["no-such-command"],
        &["run"],
        &["run", "nobody.yaml"],
        &["run", "sale.yaml", "--limit", "0"],
        &["run", "sale.yaml", "--rows", "5-2"],
        &["run", "sale.yaml", "--rows", "x"],
        &["run", "sale.yaml", "--dry-run", "--limit", "1"],
        &["run", "sale.yaml", "--gateway", "nowhere"],
        &["run", "sale.yaml", "-q", "-v"],
        &["preview", "sale.yaml", "--rows", "99"],
        &["status", "nobody@1"],
        &["results", "nobody"],
        &["stop", "nobody"],
        &["results", "sale", "--state", "lost"],
        &["gateway", "trust", "nobody"],
        &["sandbox", "--listen", "nowhere"],
        &["completions", "cobol"],
    ] {
        let refused = sale.campaign(arguments).exits(2);
        assert!(refused.stdout.is_empty() && !refused.stderr.is_empty(), "{}", refused.details());
    }
}

#[test]
fn results_path_inside_a_file_exits_2_and_sends_nothing() {
    let gateway = Gateway::accepting();
    let sale = campaign().top("results: sale.csv/results.csv").through(&gateway).write();
    sale.run(&[]).exits(2).says("part of its path is not a folder");
    assert!(gateway.requests().is_empty());
}

#[test]
fn unwritable_final_results_exit_74_and_lose_nothing() {
    let gateway = Gateway::answering([Answer::Held]);
    let sale = campaign().through(&gateway).write();
    let run = sale.start(&[]);
    until("the first request arrives", || !gateway.requests().is_empty());
    // Block the results path with a folder.
    let _ = std::fs::remove_file(sale.results_file());
    sale.write("results/sale.csv/in-the-way", "");
    gateway.release();
    run.finish().exits(74).says("cannot write the results");
    sale.campaign(&["results", "sale", "--out", "found.csv"]).exits(0);
    assert_eq!(Results::read(&sale.path("found.csv")).states(), ["accepted"; 3]);
    std::fs::remove_dir_all(sale.results_file()).expect("removed");
    sale.run(&[]).exits(0);
    assert_eq!(sale.results().states(), ["accepted"; 3]);
    assert_eq!(gateway.phones().len(), 3, "no message is sent twice");
}

#[test]
fn unusable_state_folder_exits_74_and_sends_nothing() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.write("state", "a file, not a folder");
    sale.run(&[]).exits(74);
    std::fs::remove_file(sale.path("state")).expect("removed");
    sale.write("state/ledger.sqlite", "this is not a database in spite of its name; it is plain text of some length");
    sale.run(&[]).exits(74).says("ledger.sqlite");
    assert!(gateway.requests().is_empty());
}

#[test]
fn interrupt_before_the_first_message_exits_130() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().to(200_000).through(&gateway).write();
    let mut run = sale.start(&[]);
    until("the run reads the list", || sale.path("state/ledger.sqlite").exists());
    run.signal("INT");
    let run = run.finish().exits(130);
    assert!(run.stderr.contains("interrupted"), "{}", run.details());
}
