//! Pipes, devices and folders in place of regular files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::support::{Folder, Gateway, KEY, KEY_VARIABLE, campaign, note_on_failure};

/// A campaign with every part in a separate file.
fn sale(gateway: &Gateway) -> Folder {
    let sms = "  - sms: { signature: OlenaCo, message: { file: hello.sms.txt } }";
    let sale = campaign().channels(sms).through(gateway).write();
    sale.replace("gateways.yaml", &format!("{{ env: {KEY_VARIABLE} }}"), "{ file: gateway.key }");
    sale.write("hello.sms.txt", "Hello, {{ name }}");
    sale.write("gateway.key", KEY);
    sale.write("scenario.yaml", "");
    let key = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(sale.path("gateway.key"), key).expect("a mode");
    sale
}

/// A special file, and how to create it.
type Kind = (&'static str, fn(&Path));

fn replace_with_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
}

fn replace_with_device(path: &Path) {
    symlink("/dev/zero", path).expect("a link");
}

fn replace_with_folder(path: &Path) {
    fs::create_dir(path).expect("a folder");
}

#[test]
fn special_file_is_refused_everywhere() {
    let kinds: [Kind; 3] =
        [("pipe", replace_with_pipe), ("device", replace_with_device), ("folder", replace_with_folder)];
    let check = ["check", "sale.yaml"];
    let run = ["run", "sale.yaml"];
    let scenario = ["sandbox", "--listen", "127.0.0.1:0", "--scenario", "scenario.yaml"];
    let template = ["gateway", "templates", "create", "hello", "--file", "hello.sms.txt", "--gateway", "local"];
    let cases: [(&str, &[&str]); 9] = [
        ("sale.csv", &check),
        ("sale.csv", &run),
        ("sale.yaml", &check),
        ("gateways.yaml", &check),
        ("hello.sms.txt", &check),
        ("gateway.key", &run),
        ("scenario.yaml", &scenario),
        ("sale.csv", &["init", "spring", "--from", "sale.csv"]),
        ("hello.sms.txt", &template),
    ];
    for (kind, replace) in kinds {
        for (name, arguments) in cases {
            let _case = note_on_failure(format!("case: {name} is a {kind}; {arguments:?}"));
            let gateway = Gateway::accepting();
            let sale = sale(&gateway);
            fs::remove_file(sale.path(name)).expect("a file");
            replace(&sale.path(name));
            // A device linked from outside the folder is rejected for that reason first.
            let word = if (kind, name) == ("device", "hello.sms.txt") && arguments == check {
                "outside its folder"
            } else {
                kind
            };
            sale.campaign(arguments).exits(2).says(name).says(word);
            assert!(gateway.phones().is_empty());
        }
    }
}
