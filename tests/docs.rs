//! The README and the pages of `docs/`: commands run as shown, links resolve, and format rules hold.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::examples::{campaign, empty, files, parse_json, repository, run_ok, with_examples};
use crate::house::without_tests;
use crate::looks::screen::screen;
use crate::support::{Folder, Reachable as _, SandboxProcess, Terminal};

/// The generated command reference.
const COMMANDS: &str = "docs/commands.md";

/// A page: its path in the repository and its text.
struct Page {
    path: String,
    text: String,
}

/// A fenced block of a page.
struct Block<'p> {
    /// The first word of its info string.
    language: &'p str,
    /// The rest of its info string: the file that it shows, or `terminal` for an output on a terminal.
    file: &'p str,
    text: String,
    line: usize,
}

/// The steps of a page in order.
enum Step<'p> {
    /// A command that the page needs and does not show.
    Setup(&'p str),
    Block(Block<'p>),
}

impl Page {
    fn read(path: &str) -> Self {
        let text = fs::read_to_string(repository().join(path)).expect("a page");
        Self { path: path.to_owned(), text }
    }

    /// The README and the hand-written pages.
    fn all() -> Vec<Self> {
        let pages = files(&repository().join("docs")).into_iter().map(|file| {
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            format!("docs/{name}")
        });
        let pages = pages.filter(|path| path != COMMANDS);
        ["README.md".to_owned()].into_iter().chain(pages).map(|path| Self::read(&path)).collect()
    }

    fn steps(&self) -> Vec<Step<'_>> {
        let (mut steps, mut open): (Vec<Step<'_>>, Option<Block<'_>>) = (Vec::new(), None);
        for (index, line) in self.text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            match (open.take(), fence) {
                (Some(block), Some(_)) => steps.push(Step::Block(block)),
                (Some(mut block), None) => {
                    block.text += line;
                    block.text.push('\n');
                    open = Some(block);
                }
                (None, Some(info)) => {
                    let (language, file) = info.split_once(' ').unwrap_or((info, ""));
                    open = Some(Block { language, file, text: String::new(), line: index + 1 });
                }
                (None, None) => {
                    let setup = line.strip_prefix("<!-- setup: ").and_then(|line| line.strip_suffix(" -->"));
                    steps.extend(setup.map(Step::Setup));
                }
            }
        }
        assert!(open.is_none(), "{}: a block is not closed", self.path);
        steps
    }

    fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        self.steps().into_iter().filter_map(|step| match step {
            Step::Block(block) => Some(block),
            Step::Setup(_) => None,
        })
    }

    /// The text without its fenced blocks.
    fn prose(&self) -> String {
        let (mut prose, mut is_fenced) = (String::new(), false);
        for line in self.text.lines() {
            let is_fence = line.trim_start().starts_with("```");
            is_fenced ^= is_fence;
            // A block ends the paragraph before it.
            prose += if is_fence || is_fenced { "" } else { line };
            prose.push('\n');
        }
        prose
    }

    /// The anchors of the page's headings, as GitHub generates them.
    fn anchors(&self) -> BTreeSet<String> {
        let headings = self.text.lines().filter(|line| line.starts_with('#'));
        headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
    }
}

fn anchor(heading: &str) -> String {
    let characters = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    characters.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

/// A folder with the examples, another list, and a file of purchases.
fn examples_with_lists() -> Folder {
    let folder = with_examples();
    folder.write("purchases.csv", "Phone,Date,Total\n+380500000101,2026-12-01,99.50\n");
    for place in ["clients.csv", "campaigns/clients.csv"] {
        fs::copy(repository().join("campaigns/new-arrivals.csv"), folder.path(place)).expect("a list");
    }
    folder
}

/// The output with its durations masked, because they differ each time the command runs.
fn mask_durations(output: &str) -> String {
    let words: Vec<&str> = output.trim().split(' ').collect();
    let is_time = |at: usize| words.get(at + 1).is_some_and(|next| *next == "s" || next.starts_with("s\n"));
    let masked: Vec<&str> = words.iter().enumerate().map(|(at, word)| if is_time(at) { "N" } else { *word }).collect();
    masked.join(" ")
}

/// What a command prints on a terminal.
fn output_on_a_terminal(folder: &Folder, command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let (_, output) = Terminal::start(folder.command(&words)).finish_with_output();
    screen(&output, 100, false)
}

/// The commands of a block that a test can run. Servers, which do not end by themselves, and commands for a live
/// gateway are left out.
fn commands(block: &str) -> impl Iterator<Item = &str> {
    let lines = block.lines().map(|line| line.split(" #").next().unwrap_or(line).trim());
    let servers = ["campaign sandbox", "campaign serve", "campaign connector", "campaign worker"];
    lines.filter(move |line| {
        line.starts_with("campaign ")
            && !servers.iter().any(|server| line.starts_with(server))
            && !line.contains("production")
    })
}

#[test]
fn every_page_is_linked_from_the_index() {
    let index = Page::read("docs/README.md");
    for file in files(&repository().join("docs")) {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(name == "README.md" || index.text.contains(&format!("({name}")), "docs/README.md does not link {name}");
    }
    assert!(Page::read("README.md").text.contains("(docs/README.md)"));
}

#[test]
fn links_point_to_existing_files_and_headings() {
    let link = regex::Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
    let mut dead = Vec::new();
    let mut pages = Page::all();
    pages.extend(["ARCHITECTURE.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md", COMMANDS].map(Page::read));
    let notes = files(&repository().join("docs/design"));
    let names = notes.iter().map(|note| note.file_name().expect("a name").to_string_lossy().into_owned());
    pages.extend(names.map(|name| Page::read(&format!("docs/design/{name}"))));
    for page in &pages {
        let folder = Path::new(&page.path).parent().expect("a folder");
        for found in link.captures_iter(&page.text) {
            let target = found.get(1).expect("a target").as_str();
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { page.path.clone() } else { folder.join(file).display().to_string() };
            let path = path.replace("docs/design/../", "docs/").replace("docs/../", "");
            let exists = repository().join(&path).exists();
            if !exists || (!heading.is_empty() && !Page::read(&path).anchors().contains(heading)) {
                dead.push(format!("{}: {target}", page.path));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn pages_follow_the_format_rules() {
    let breaks = regex::Regex::new(r"[.:!?]\s+|\n\s*(?:[-*]|\d+\.) ").expect("a pattern");
    let mut faults = String::new();
    for page in Page::all() {
        let limit = if page.path == "README.md" { 120 } else { 200 };
        let lines = page.text.lines().count();
        if lines > limit {
            let _ = writeln!(faults, "{}: {lines} lines, at most {limit}", page.path);
        }
        for (number, line) in page.text.lines().enumerate() {
            if line.chars().count() > 120 && !line.starts_with('|') {
                let _ = writeln!(faults, "{}:{}: longer than 120 characters", page.path, number + 1);
            }
        }
        let prose = page.prose();
        let (mut sentences, mut words) = (0, 0);
        for paragraph in prose.split("\n\n").map(str::trim) {
            if paragraph.starts_with(['#', '|', '<', '!']) {
                continue;
            }
            let is_list = paragraph.starts_with("- ") || paragraph.starts_with("1. ");
            if !is_list && paragraph.lines().count() > 5 {
                let _ = writeln!(faults, "{}: a paragraph has more than 5 lines: {paragraph:.60}…", page.path);
            }
            for sentence in breaks.split(paragraph) {
                let number = sentence.split_whitespace().count();
                if number > 2 {
                    (sentences, words) = (sentences + 1, words + number);
                }
            }
        }
        if words > sentences * 18 {
            let _ = writeln!(faults, "{}: {words} words in {sentences} sentences, more than 18 each", page.path);
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn documented_commands_succeed_and_print_the_shown_output() {
    let (mut command_count, mut output_count) = (0, 0);
    let mut faults = String::new();
    for page in Page::all() {
        let steps = page.steps();
        let has_commands = steps.iter().any(|step| match step {
            Step::Setup(_) => true,
            Step::Block(block) => block.language == "sh" && commands(&block.text).next().is_some(),
        });
        if !has_commands {
            continue;
        }
        let (folder, sandbox) = (examples_with_lists(), SandboxProcess::start());
        folder.replace("gateways.yaml", "http://127.0.0.1:8025", &sandbox.base_url());
        let (mut printed, mut last) = (String::new(), String::new());
        let run_command = |command: &str, line: usize, faults: &mut String| {
            let words: Vec<&str> = command.split_whitespace().skip(1).collect();
            let finished = campaign(&folder, &words);
            if finished.code() != Some(0) {
                let _ = writeln!(faults, "{}:{line}: `{command}` fails: {}", page.path, finished.details());
            }
            finished.stdout
        };
        for step in &steps {
            match step {
                Step::Setup(command) => printed = run_command(command, 0, &mut faults),
                Step::Block(block) if block.language == "sh" => {
                    for command in commands(&block.text) {
                        printed = run_command(command, block.line, &mut faults);
                        command.clone_into(&mut last);
                        command_count += 1;
                    }
                }
                Step::Block(block) if block.language == "text" => {
                    output_count += 1;
                    if block.file == "terminal" {
                        printed = output_on_a_terminal(&folder, &last);
                    }
                    let (shown, printed) = (mask_durations(&block.text), mask_durations(&printed));
                    if shown != printed {
                        let _ = writeln!(faults, "{}:{}: the command prints\n{printed}", page.path, block.line);
                    }
                }
                Step::Block(block) if block.file.contains('.') => folder.write(block.file, &block.text),
                Step::Block(_) => {}
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
    assert!(command_count > 60 && output_count > 7, "{command_count} commands, {output_count} outputs");
}

#[test]
fn campaigns_in_pages_pass_check_with_every_profile() {
    let pages = Page::all();
    let blocks_with = |key: &'static str| {
        let blocks = pages.iter().flat_map(|page| page.blocks().map(move |block| (page, block)));
        blocks.filter(move |(_, block)| block.language == "yaml" && block.text.contains(key)).collect::<Vec<_>>()
    };
    let campaigns: Vec<_> = blocks_with("channels:").into_iter().collect();
    let profiles: Vec<_> =
        blocks_with("base_url:").into_iter().filter(|(_, block)| block.text.starts_with("production:")).collect();
    assert!(campaigns.len() > 10 && !profiles.is_empty(), "{} campaigns", campaigns.len());
    let complete = profiles.iter().find(|(_, block)| block.text.contains("async_url")).expect("a complete profile");
    let folder = examples_with_lists();
    let mut faults = String::new();
    for (page, campaign_block) in &campaigns {
        for (_, profile) in &profiles {
            // A campaign with `endpoint: async` needs a profile with `async_url`. A cost limit needs prices.
            let needs_all = ["endpoint: async", "cost:"].iter().any(|key| campaign_block.text.contains(key));
            let profile = if needs_all { &complete.1 } else { profile };
            folder.write("gateways.yaml", &profile.text);
            folder.write("campaigns/shown.yaml", &campaign_block.text);
            for arguments in [&["check"][..], &["run", "--dry-run"]] {
                let arguments = [arguments, &["campaigns/shown.yaml", "--gateway", "production"]].concat();
                let finished = campaign(&folder, &arguments);
                if finished.code() != Some(0) {
                    let _ = writeln!(faults, "{}:{}: {}", page.path, campaign_block.line, finished.details());
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn channel_table_lists_every_key_of_a_channel() {
    let schema = parse_json(&run_ok(&empty(), &["schema"]));
    let channels = schema["properties"]["channels"]["items"]["anyOf"][0]["properties"].as_object().expect("channels");
    let document = Page::read("docs/channels.md").text;
    let find_line = |start: &str| document.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    let find_missing = |line: &str, keys: &serde_json::Value| {
        let keys = keys.as_object().expect("keys").keys().filter(|key| *key != "fields");
        keys.filter(|key| !line.contains(&format!("`{key}`"))).cloned().collect::<Vec<_>>()
    };
    assert!(channels.len() >= 8, "{channels:?}");
    for (channel, schema) in channels {
        let missing = find_missing(find_line(&format!("| `{channel}` |")), &schema["properties"]);
        assert!(missing.is_empty(), "{channel}: {missing:?}");
    }
    let card = &channels["viber"]["properties"]["carousel"]["items"]["properties"];
    assert_eq!(find_missing(find_line("A `carousel` has"), card), Vec::<String>::new());
}

/// Appends the help of a command and of its subcommands as Markdown.
fn write_reference(folder: &Folder, command: &[&str], markdown: &mut String) {
    let help = run_ok(folder, &[command, &["--help"]].concat());
    let level = "#".repeat(command.len() + 1);
    let name = [&["campaign"], command].concat().join(" ");
    let _ = write!(markdown, "{level} {name}\n\n```console\n$ {name} --help\n{}\n```\n\n", help.trim_end());
    let listed = help
        .lines()
        .skip_while(|line| !line.ends_with(':') || line.starts_with("Usage"))
        .take_while(|line| *line != "Options:");
    let names: Vec<&str> = listed
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()))
        .filter_map(|line| line.split("  ").next())
        .filter(|name| *name != "help" && !name.contains(' '))
        .collect();
    if !help.contains("COMMAND") {
        return;
    }
    for name in names {
        write_reference(folder, &[command, &[name]].concat(), markdown);
    }
}

#[test]
fn command_reference_matches_the_help_of_every_command() {
    let mut markdown = "# Command reference\n\nThe help of every command, generated from the program.\n\n".to_owned();
    write_reference(&empty(), &[], &mut markdown);
    let path = repository().join(COMMANDS);
    if std::env::var_os("CAMPAIGN_WRITE_DOCS").is_some() {
        fs::write(&path, &markdown).expect("a page");
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(markdown.matches("\n## ").count() > 25, "{markdown}");
    assert!(stored == markdown, "write {COMMANDS} again: CAMPAIGN_WRITE_DOCS=1 cargo test --test stories docs::");
}

#[test]
fn editor_schemas_match_the_program() {
    for format in ["campaign", "gateways"] {
        let schema = run_ok(&empty(), &["schema", format]);
        let path = repository().join(format!(".vscode/{format}.schema.json"));
        if std::env::var_os("CAMPAIGN_WRITE_DOCS").is_some() {
            fs::write(&path, &schema).expect("a schema");
        }
        let stored = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            stored == schema,
            "write {} again: CAMPAIGN_WRITE_DOCS=1 cargo test --test stories docs::",
            path.display()
        );
    }
}

/// The files that connect to another process, each with its row in `docs/security.md`.
const CONNECTING: [(&str, &str); 11] = [
    ("src/serve.rs", "| the address of the dashboard |"),
    ("crates/server/src/connector/approval.rs", "| `campaign connector` on this machine |"),
    ("crates/gateway/src/webhook_urls.rs", "| your own `hook: { public_url }` |"),
    ("crates/gateway/src/json_api/mod.rs", "| the gateway: `base_url` |"),
    ("crates/ledger/src/postgres/opening.rs", "| the ledger: `postgres://…` |"),
    ("crates/ledger/src/postgres/transfer.rs", "| the ledger: `postgres://…` |"),
    ("crates/ledger/src/postgres/transaction.rs", "| the ledger: `postgres://…` |"),
    ("crates/runs/src/notify/targets.rs", "| a receiver of notifications: `notify: { url }` |"),
    ("crates/runs/src/fetch/query.rs", "| a database: `recipients: { sql, from }` |"),
    ("crates/runs/src/fetch/url.rs", "| a list: `recipients: { url }`"),
    ("crates/sandbox/src/server/webhook_client.rs", "| webhook receivers of a rehearsal |"),
];

/// The source of a file without comments and tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source file");
    without_tests(&text)
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |code, line| code + line + "\n")
}

/// Collects the source files in a folder and its subfolders, without test modules.
fn collect_sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            collect_sources(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

#[test]
fn security_page_lists_every_outgoing_connection() {
    let security = Page::read("docs/security.md").text;
    assert!(security.contains("`campaign` has no telemetry, update checks or crash reporting."));
    let root = repository();
    let mut files = Vec::new();
    collect_sources(&root.join("src"), &mut files);
    collect_sources(&root.join("crates"), &mut files);
    let connects = regex::Regex::new(
        r"http_client::(plain_)?builder\(|TcpStream::connect|UnixStream::connect|UdpSocket|Pg\w+::connect|MySql\w+::connect|connect_lazy|\.connect\(\)|\bClient::new\(",
    )
    .expect("a pattern");
    let url = regex::Regex::new(r"https?://([A-Za-z0-9.-]+\.[a-z]{2,})").expect("a pattern");
    // Identifiers of formats, and example hosts. The program does not connect to them.
    let known = [
        "schemas.openxmlformats.org",
        "json.schemastore.org",
        "json-schema.org",
        "adaptivecards.io",
        "api.provider.ua",
    ];
    let mut connecting = BTreeSet::new();
    for file in &files {
        let (name, code) = (file.strip_prefix(&root).expect("in the repository").display().to_string(), code(file));
        for found in url.captures_iter(&code) {
            let host = found.get(1).expect("a host").as_str();
            assert!(
                host.ends_with(".example") || host.ends_with(".example.com") || known.contains(&host),
                "{name}: {host}"
            );
        }
        // SQLite connects to a file, not to a host.
        if connects.is_match(&code) && !name.starts_with("crates/ledger/src/sqlite/") {
            connecting.insert(name);
        }
    }
    let listed: BTreeSet<String> = CONNECTING.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(connecting, listed, "docs/security.md lists all addresses that are contacted");
    for (file, row) in CONNECTING {
        assert!(security.contains(row), "docs/security.md has no row for {file}");
    }
}
