//! Preview and plan pages as files: content, untrusted list values, and no scripts or external resources.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Finished, Folder, Gateway, Html, Process, campaign, until};

/// Runs `preview` with these options and returns its page.
fn preview_page(sale: &Folder, options: &[&str]) -> (String, Html) {
    sale.campaign(&[&["preview", "sale.yaml", "--html", "out.html"], options].concat()).exits(0);
    read_page(sale, "out.html")
}

fn read_page(sale: &Folder, name: &str) -> (String, Html) {
    let page = fs::read_to_string(sale.path(name)).expect("a page");
    let html = Html::sound(&page);
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("url("), "{page}");
    (page, html)
}

const VIBER_AND_SMS: &str = "  - viber:
      signature: OlenaCo
      message: \"Hello, {{ name }}: https://shop.example/?c={{ phone }}\"
      image: https://cdn.example/autumn.png
      button: Shop now
      link: https://shop.example
  - sms: { signature: OlenaCo, message: \"Привіт, {{ name }}! Знижка до неділі на все пальто, шарфи та рукавички у крамниці.\" }";

#[test]
fn first_messages_are_shown_by_channel_with_their_cost() {
    let sale = campaign().to(25).channels(VIBER_AND_SMS).write();
    let (_, html) = preview_page(&sale, &["--lang", "en"]);
    assert_eq!(html.with_class("message").len(), 20);
    assert_eq!((html.with_class("phone-viber").len(), html.with_class("phone-sms").len()), (20, 20));
    let viber = html.with_class("phone-viber")[0].words();
    for expected in
        ["Viber", "OlenaCo", "Hello, Person 2", "https://cdn.example/autumn.png", "Shop now", "https://shop.example"]
    {
        assert!(viber.contains(expected), "{expected}: {viber}");
    }
    let sms = html.with_class("phone-sms")[0].words();
    for expected in
        ["Choice 2, if earlier channels do not deliver", "Привіт, Person 2!", "part 2", "2 parts", "Unicode"]
    {
        assert!(sms.contains(expected), "{expected}: {sms}");
    }
    assert!(html.all("mark").iter().any(|mark| mark.text == "Person 2"));
    let shown = html.one("main").words();
    assert!(shown.contains("Rows in the list 25"), "{shown}");
}

#[test]
fn numbers_are_masked_everywhere_unless_requested() {
    let sale = campaign().channels(VIBER_AND_SMS).write();
    let (page, html) = preview_page(&sale, &[]);
    assert!(!page.contains("380501") && !page.contains("0501000"), "{page}");
    assert!(html.all("h3")[0].words().ends_with("…02"), "{}", html.all("h3")[0].words());
    let (page, _) = preview_page(&sale, &["--unmasked"]);
    assert!(page.contains("+380501000002") && page.contains("?c=") && page.contains("380501000002"));
}

#[test]
fn hostile_cell_is_rendered_as_plain_text() {
    let list = "phone,name\n380501000002,\"<script>alert(1)</script><img src=x onerror=alert(2)>\"\n\
                380501000003,\"\"\"> <b onclick='x'>{{ 7 * 7 }}\"\n380501000004,\"</style></title>\u{202e}\u{0007}&lt;\"\n";
    let sale = campaign().with_list(list).write();
    let (_, html) = preview_page(&sale, &["--rows", "2-4"]);
    assert!(html.all("b").is_empty());
    let texts: Vec<String> = html.with_class("said").into_iter().map(|bubble| bubble.text.clone()).collect();
    assert_eq!(texts[0], "Hello, <script>alert(1)</script><img src=x onerror=alert(2)>");
    assert_eq!(texts[1], "Hello, \"> <b onclick='x'>{{ 7 * 7 }}");
    assert_eq!(texts[2], "Hello, </style></title>\\u{202e}\\u{7}&lt;");
}

#[test]
fn preview_shows_skipped_recipients_and_findings_in_place() {
    let list = "phone,name\n380501000002,Olia\n380501000002,Olia\nnobody,Ivan\n";
    let channels = "  - sms: { signature: OlenaCo, message: \"Hello, {{ name }}: http://shop.example\" }";
    let sale = campaign().with_list(list).channels(channels).recipients("max_invalid: 100%").write();
    let (_, html) = preview_page(&sale, &["--lang", "en"]);
    let table = html.one("table").words();
    assert!(table.contains("duplicate number Skipped 1"), "{table}");
    assert!(table.contains("Invalid 1"), "{table}");
    let sms = html.with_class("phone-sms")[0].words();
    assert!(sms.contains("Warning") && sms.contains("insecure-link") && sms.contains("sale.yaml:"), "{sms}");
    let messages = html.with_class("message").into_iter().map(|message| message.words()).collect::<Vec<_>>();
    assert!(messages[1].contains("Skipped: duplicate number"), "{messages:?}");
    assert!(messages[2].contains("Invalid:"), "{messages:?}");
}

#[test]
fn page_uses_the_requested_or_the_system_language() {
    let sale = campaign().write();
    for (variable, locale, option, code) in [
        ("LANG", "uk_UA.UTF-8", None, "uk"),
        ("LANG", "de_DE.UTF-8", None, "en"),
        ("LC_ALL", "uk_UA.UTF-8", Some("en"), "en"),
        ("LANG", "C", Some("uk"), "uk"),
    ] {
        let mut command = sale.command(&["preview", "sale.yaml", "--html", "out.html"]);
        command.env(variable, locale).args(option.map(|code| ["--lang", code]).into_iter().flatten());
        Process::start(command).finish().exits(0);
        let (_, html) = read_page(&sale, "out.html");
        assert_eq!(html.one("html").attribute("lang"), code, "{variable}={locale} {option:?}");
        let words = if code == "uk" { "Повідомлення" } else { "Messages" };
        assert!(html.all("h2").iter().any(|heading| heading.words() == words), "{variable}={locale} {option:?}");
    }
}

#[test]
fn page_file_is_private_and_never_replaces_other_files() {
    let sale = campaign().write();
    preview_page(&sale, &[]);
    let mode = fs::metadata(sale.path("out.html")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    preview_page(&sale, &["--rows", "3"]);
    let file_names: Vec<_> =
        fs::read_dir(sale.path(".")).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
    assert!(!file_names.iter().any(|name| name.to_string_lossy().starts_with(".campaign-page-")), "{file_names:?}");
    let list = fs::read_to_string(sale.path("sale.csv")).expect("a list");
    sale.campaign(&["preview", "sale.yaml", "--html", "sale.csv"]).exits(2).says("not a page written by campaign");
    sale.campaign(&["plan", "sale.yaml", "--out", "sale.yaml"]).exits(2).says("not a page written by campaign");
    assert_eq!(fs::read_to_string(sale.path("sale.csv")).expect("a list"), list);
}

#[test]
fn invalid_options_are_reported_and_nothing_is_written() {
    let sale = campaign().write();
    fs::create_dir(sale.path("pages")).expect("a folder");
    let uses: [(&[&str], &str); 7] = [
        (&["preview", "sale.yaml", "--open"], "--html"),
        (&["preview", "sale.yaml", "--lang", "uk"], "--html"),
        (&["plan", "sale.yaml", "--unmasked"], "--out"),
        (&["preview", "sale.yaml", "--html", "a.html", "--lang", "de"], "de"),
        (&["preview", "sale.yaml", "--html", "-"], "standard output"),
        (&["preview", "sale.yaml", "--html", "pages"], "is a folder"),
        (&["preview", "sale.yaml", "--html", "a.html", "--rows", "99"], "99"),
    ];
    for (arguments, expected) in uses {
        sale.campaign(arguments).exits(2).says(expected);
    }
    sale.campaign(&["preview", "sale.yaml", "--html", "nowhere/a.html"]).exits(2).says("nowhere/a.html");
    assert!(!sale.path("a.html").exists());
}

#[test]
fn json_output_has_the_page_path_and_row_count() {
    let sale = campaign().write();
    let output = sale.campaign(&["preview", "sale.yaml", "--html", "out.html", "--json"]).exits(0).json();
    assert_eq!(output, serde_json::json!({ "html": "out.html", "rows": 3, "exit": 0, "version": 1 }));
    let output = sale.campaign(&["plan", "sale.yaml", "--out", "plan.html", "--json"]).exits(0).json();
    assert_eq!((&output["html"], &output["rows"], &output["exit"]), (&"plan.html".into(), &3.into(), &0.into()));
}

#[test]
fn plan_page_shows_messages_and_commands_with_its_digest() {
    let gateway = Gateway::accepting();
    let sale = campaign()
        .channels(VIBER_AND_SMS)
        .through(&gateway)
        .profile("prices: { sms: 0.80, viber: 0.50 }")
        .profile("currency: UAH")
        .write();
    let planned = sale.campaign(&["plan", "sale.yaml", "--out", "plan.html", "--lang", "en", "--json"]).exits(0).json();
    let digest = planned["digest"].as_str().expect("a digest");
    let (_, html) = read_page(&sale, "plan.html");
    let commands: Vec<String> = html.all("pre").into_iter().map(|pre| pre.text.clone()).collect();
    let short = &digest[..16];
    assert_eq!(
        commands,
        [digest.to_owned(), format!("campaign approve {short}"), format!("campaign run sale.yaml --plan {short}")]
    );
    let page = html.one("main").words();
    let source = "Source recipients.file: sale.csv";
    for expected in ["Gateway: local", "Maximum cost 4.80 UAH", "Hello, Person 2", "kept for 30 days", source] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert_eq!(gateway.requests().len(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn page_opens_in_the_system_browser_or_its_path_is_shown() {
    let sale = campaign().write();
    sale.write("bin/xdg-open", "#!/bin/sh\nprintf '%s' \"$1\" > opened.part && mv opened.part opened\n");
    fs::set_permissions(sale.path("bin/xdg-open"), fs::Permissions::from_mode(0o700)).expect("a mode");
    let open = |screen: Option<&str>, path: &str| -> Finished {
        let mut command = sale.command(&["preview", "sale.yaml", "--html", "out.html", "--open"]);
        command.env("PATH", path).envs(screen.map(|screen| ("DISPLAY", screen)));
        Process::start(command).finish().exits(0)
    };
    let path = format!("{}:/usr/bin:/bin", sale.path("bin").display());
    open(None, &path).says("no graphical display is available").says("out.html");
    assert!(!sale.path("opened").exists());
    open(Some(":0"), &path);
    until("the page is opened", || sale.path("opened").exists());
    let opened = fs::read_to_string(sale.path("opened")).expect("a path");
    assert_eq!(fs::canonicalize(opened).expect("a file"), fs::canonicalize(sale.path("out.html")).expect("a file"));
    open(Some(":0"), "/nowhere").says("`xdg-open` cannot be started").says("out.html");
}

#[test]
fn preview_of_an_empty_audience_shows_texts() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(0);
    let page = preview_page(&sale, &["--lang", "en"]).1.one("main").words();
    for expected in ["No recipient on this list gets a message now", "already got this message", "Hello, Person 2"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    sale.campaign(&["plan", "sale.yaml", "--out", "plan.html", "--lang", "en"]).exits(0);
    let (_, html) = read_page(&sale, "plan.html");
    assert!(html.one("main").words().contains("This plan sends nothing"));
    assert_eq!(html.all("pre").len(), 1, "the digest alone, and no command");
}
