//! Files outside the campaign's folder: commands that a person runs may open them.

use std::os::unix::fs::symlink;

use crate::support::{Folder, Gateway, Process, campaign, phone};

/// A campaign in `campaigns` whose paths all lead out of its folder.
fn reaching_folder(gateway: &Gateway) -> Folder {
    let folder = campaign().through(gateway).write();
    let list: String = (2..5).map(|row| format!("{},Lviv\n", phone(row))).collect();
    folder.write("lists/may.csv", &format!("phone,city\n{list}"));
    folder.write("lists/stop.csv", &format!("phone\n{}\n", phone(2)));
    folder.write("lists/stores.csv", "city,street\nLviv,Rynok 2\n");
    folder.write("templates/hello.txt", "Come to {{ stores[city].street }}");
    folder.write("campaigns/x", "x");
    symlink("../lists/stores.csv", folder.path("campaigns/stores.csv")).expect("a link");
    symlink("../out", folder.path("campaigns/results")).expect("a link");
    folder.write("out/x", "x");
    let stop = folder.path("lists/stop.csv").display().to_string();
    folder.write(
        "campaigns/may.yaml",
        &format!(
            "gateway: local\nrecipients: {{ file: ../lists/may.csv, suppress: [\"{stop}\"] }}\n\
             data: {{ stores: {{ file: stores.csv, key: city }} }}\n\
             channels: [ sms: {{ signature: OlenaCo, message: {{ file: hello.txt }} }} ]\n"
        ),
    );
    folder
}

#[test]
fn user_commands_can_open_files_outside_the_folder() {
    let gateway = Gateway::accepting();
    let folder = reaching_folder(&gateway);
    folder.campaign(&["check", "campaigns/may.yaml"]).exits(0);
    folder.campaign(&["preview", "campaigns/may.yaml"]).exits(0).says("Come to Rynok 2");
    folder.campaign(&["run", "campaigns/may.yaml", "--yes"]).exits(0);
    assert_eq!(gateway.phones(), [phone(3), phone(4)]);
    assert!(folder.path("out/may.csv").exists(), "results follow the user's link");
}

#[test]
fn results_are_not_written_via_a_link_at_the_temporary_path() {
    let gateway = Gateway::accepting();
    let folder = reaching_folder(&gateway);
    folder.write("victim.txt", "dear diary");
    // The temporary file's name contains the process id. The shell replaces itself with the program and keeps its id.
    let link = "ln -s ../victim.txt out/.may.csv.$$.tmp";
    let run = folder.command_after(link, &["run", "campaigns/may.yaml", "--yes"]);
    Process::start(run).finish().exits(0);
    assert_eq!(std::fs::read_to_string(folder.path("victim.txt")).expect("a file"), "dear diary");
    assert_eq!(gateway.phones().len(), 2);
}
