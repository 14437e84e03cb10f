//! `campaign demo`: writes a campaign, checks it, rehearses it in a sandbox, kills the sending process and resumes the
//! run.
//!
//! Each step runs this program as a child process, as a person would. The sandbox runs in this process, so that it
//! outlives the killed child. Its journal shows what a gateway received, independently of the ledger. The demo must not
//! use the user's ledger or gateways: the child processes get their own.

mod files;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::args::{ColorChoice, DemoArgs};
use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use super::output::Output;
use super::page_file::try_open_page;
use super::prompt::{CANCELLED, read_typed_line};
use super::text::{SpanMeaning, StyledLine, StyledText, bad, good, plain, span, strong};
use super::{process, progress};
use campaign_engine::delivery::Interrupt;
use campaign_engine::report::format_thousands;
use campaign_runs::Error;
use campaign_sandbox::{
    FaultEffect, Journal, Sandbox, SandboxSettings, Scenario, ScenarioCondition, ScenarioFault, load_scenario,
};
use files::{
    CAMPAIGN_FILE, CHANNELS, DemoFolder, JOURNAL_FILE, KEY, LIST_FILE, MISTAKES, NAME, PlantedMistake, RECIPIENTS,
    REPORT_FILE, SCENARIO_FILE, STATE_FOLDER,
};

/// The request that the gateway executes but does not answer in time. Requests contain 1, 5, 20 and then 50 messages,
/// so after 13 requests, the gateway has more than half of the messages.
const UNANSWERED_REQUEST: RangeInclusive<u64> = 13..=13;
/// The delay of the answer to that request. The sending process is killed long before the answer arrives.
const ANSWER_DELAY: Duration = Duration::from_secs(20);
/// The interval between readings of the number of received messages.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The maximum time until half of the messages have arrived.
const SENDING_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) async fn run_demo(context: &Context, args: &DemoArgs) -> Result<u8, CommandFailure> {
    let options = context.output.options.to_string();
    if !options.is_empty() {
        let message = format!("the demo uses its own ledger and gateway; remove `{}`", options.trim());
        return Err(CommandFailure::invalid(message));
    }
    let folder = DemoFolder::create(args.dir.as_deref())?;
    let interrupt = context.watch_signals()?;
    folder.write_campaign()?;
    let sandbox = start_sandbox(&folder).await?;
    let (output, color) = (context.output.clone(), context.global.color);
    let is_paced = !args.fast && output.can_ask() && !output.quiet && std::io::stdout().is_terminal();
    let demo = Demo { output, color, folder, sandbox, interrupt, is_paced };
    let result = demo.show().await;
    let Demo { output, folder, sandbox, .. } = demo;
    sandbox.stop().await;
    let figures = result?;
    if is_paced {
        // Without a display, the path below is enough.
        let _ = try_open_page(&folder.file(REPORT_FILE)).await;
    }
    Ok(report_demo_result(&output, &folder, &figures))
}

/// Starts the sandbox of the demo, and writes its profile.
async fn start_sandbox(folder: &DemoFolder) -> Result<Sandbox, CommandFailure> {
    let loaded = load_scenario(&folder.file(SCENARIO_FILE));
    let Some(mut scenario) = loaded.value else { return Err(Error::Findings(loaded.findings).into()) };
    delay_answer(&mut scenario);
    let settings = SandboxSettings {
        key: KEY.into(),
        journal: Journal::File(folder.file(JOURNAL_FILE)),
        scenario: Arc::new(scenario),
        ..SandboxSettings::default()
    };
    let sandbox = Sandbox::start(settings).await;
    let sandbox =
        sandbox.map_err(|error| CommandFailure::storage_failure(format!("cannot start the sandbox: {error}")))?;
    folder.write_profile(&sandbox.base_url())?;
    Ok(sandbox)
}

/// Delays the gateway's answer to one request. The sending process is killed while it waits for this answer, so it does
/// not know whether the messages were sent.
fn delay_answer(scenario: &mut Scenario) {
    let when = ScenarioCondition { envelope: Some(UNANSWERED_REQUEST), ..ScenarioCondition::default() };
    scenario.faults.push(ScenarioFault { when, effect: FaultEffect::Delay(ANSWER_DELAY) });
}

/// A demo with its folder and sandbox.
struct Demo {
    output: Output,
    color: ColorChoice,
    folder: DemoFolder,
    sandbox: Sandbox,
    interrupt: watch::Receiver<Interrupt>,
    /// Whether the demo waits for Enter between the steps.
    is_paced: bool,
}

struct DemoFigures {
    /// The number of messages that the gateway had received when the process was killed.
    sent_before_kill: u64,
    /// The messages that the gateway had accepted at the end.
    received: ReceivedMessages,
}

impl Demo {
    /// Runs all steps of the demo, and shows them.
    async fn show(&self) -> Result<DemoFigures, CommandFailure> {
        let recipients = format_thousands(RECIPIENTS);
        let send = ["run", CAMPAIGN_FILE, "--gateway", "demo", "--yes"];
        let check = ["check", CAMPAIGN_FILE, "--gateway", "demo"];

        self.begin_step("1", "A campaign").await?;
        self.print_prose(&format!(
            "`{}` has a campaign for {recipients} made-up recipients: `{CAMPAIGN_FILE}` and `{LIST_FILE}`. \
             {CHANNELS} The gateway is a sandbox in this process, so no recipient gets a message. The demo has its \
             own ledger in `{STATE_FOLDER}` and does not use yours.",
            self.folder.path.display()
        ));

        self.begin_step("2", "Check it before anything is sent").await?;
        self.run_command(&check, exit::INVALID).await?;

        self.begin_step("3", "Correct both mistakes, and check again").await?;
        self.show_corrections();
        self.folder.correct_mistakes()?;
        self.run_command(&check, exit::SUCCESS).await?;

        self.begin_step("4", "See what a recipient gets").await?;
        self.run_command(&["preview", CAMPAIGN_FILE, "--gateway", "demo", "--first", "1"], exit::SUCCESS).await?;

        self.begin_step("5", "Send, and kill the sending process halfway").await?;
        let sent_before_kill = self.run_until_killed(&send).await?;
        self.print_lines([StyledLine::failure([
            bad("killed"),
            plain(format!(
                " (with SIGKILL, to simulate a power failure): the gateway has {} of {recipients} messages, and the \
                 process did not receive the response to its last request",
                format_thousands(sent_before_kill)
            )),
        ])]);

        self.begin_step("6", "Run the same command again").await?;
        self.print_prose("It asks the gateway about the unanswered request, and sends only the missing messages.");
        self.run_command(&send, exit::SUCCESS).await?;

        self.begin_step("7", "And once more").await?;
        self.print_prose("All recipients already have this message, so there is nothing to send.");
        self.run_command(&send, exit::SUCCESS).await?;

        self.begin_step("8", "Count what the gateway received").await?;
        // Messages reach their final status, as if their recipients had had time to read them.
        self.sandbox.drain().await;
        let journal = self.folder.file(JOURNAL_FILE);
        let received = count_messages(&journal);
        let received = received.map_err(|error| {
            CommandFailure::storage_failure(format!("cannot read the journal `{}`: {error}", journal.display()))
        })?;
        self.print_prose(&format!("The sandbox logs every message it receives to `{JOURNAL_FILE}`."));
        self.print_lines([describe_received_messages(received)]);

        self.begin_step("9", "See the report").await?;
        self.run_command(&["reconcile", NAME, "--all"], exit::SUCCESS).await?;
        self.run_command(&["report", NAME, "--out", REPORT_FILE], exit::SUCCESS).await?;
        Ok(DemoFigures { sent_before_kill, received })
    }

    /// Prints the title of a step. A paced demo first waits for Enter, except before step 1.
    async fn begin_step(&self, number: &str, title: &str) -> Result<(), CommandFailure> {
        if self.is_paced && number != "1" {
            let typed = read_typed_line("\nPress Enter to continue, or Ctrl-C to stop: ".to_owned());
            self.wait_or_interrupt(typed).await?.map_err(CommandFailure::from)?;
        }
        self.check_interrupt()?;
        let title = StyledLine::new([strong(format!("{number}. {title}"))]);
        self.print_lines([StyledLine::new([]), title]);
        Ok(())
    }

    fn print_prose(&self, text: &str) {
        self.print_lines([StyledLine::from_prose(text).with_hang(0)]);
    }

    fn print_lines<const N: usize>(&self, lines: [StyledLine; N]) {
        if self.is_silent() {
            return;
        }
        let mut text = StyledText::new();
        lines.into_iter().for_each(|line| text.push(line));
        self.output.print_result(text);
    }

    fn is_silent(&self) -> bool {
        self.output.json || self.output.quiet
    }

    fn show_corrections(&self) {
        for PlantedMistake { wrong, right } in &MISTAKES {
            self.print_lines([
                StyledLine::new([bad(format!("- {}", wrong.trim_start()))]).unbroken(),
                StyledLine::new([good(format!("+ {}", right.trim_start()))]).unbroken(),
            ]);
        }
    }

    /// Prints a command, and starts this program in the demo's folder with the demo's own ledger and gateways.
    fn start_command(&self, arguments: &[&str]) -> Result<Child, CommandFailure> {
        let arguments = [arguments, &["--state-dir", STATE_FOLDER]].concat();
        self.print_lines([StyledLine::new([
            span(SpanMeaning::Next, "$"),
            plain(" "),
            strong(format!("campaign {}", arguments.join(" "))),
        ])
        .unbroken()]);
        let failed = |error| CommandFailure::new(exit::BUG, format!("cannot start this program again: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(arguments).current_dir(&self.folder.path).stdin(Stdio::null()).kill_on_drop(true);
        for variable in ["CAMPAIGN_LEDGER", "CAMPAIGN_STATE_DIR", "CAMPAIGN_GATEWAYS"] {
            command.env_remove(variable);
        }
        match self.color {
            ColorChoice::Auto => {}
            ColorChoice::Always => drop(command.args(["--color", "always"])),
            ColorChoice::Never => drop(command.args(["--color", "never"])),
        }
        if self.is_silent() {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        // Ctrl-C reaches only this process, which ends the child and says where the files are.
        #[cfg(unix)]
        command.process_group(0);
        command.spawn().map_err(failed)
    }

    /// Runs a command until it exits.
    ///
    /// # Errors
    /// If the command exits with an unexpected code, or a signal stops the demo.
    async fn run_command(&self, arguments: &[&str], expected: u8) -> Result<(), CommandFailure> {
        let mut child = self.start_command(arguments)?;
        let status = self.wait_or_interrupt(child.wait()).await?;
        match status.ok().and_then(|status| status.code()) {
            Some(code) if code == i32::from(expected) => Ok(()),
            code => Err(unexpected_exit(arguments, code)),
        }
    }

    /// Starts sending, and kills the process when the gateway has half of the messages. Returns how many messages the
    /// gateway has.
    async fn run_until_killed(&self, arguments: &[&str]) -> Result<u64, CommandFailure> {
        let mut child = self.start_command(arguments)?;
        let half_received = async {
            while self.sandbox.counts().messages < RECIPIENTS / 2 {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        // `None` if the gateway has half of the messages, otherwise the exit code if there is one.
        let early_end = self.wait_or_interrupt(async {
            tokio::select! {
                () = half_received => None,
                () = tokio::time::sleep(SENDING_TIMEOUT) => Some(None),
                status = child.wait() => Some(status.ok().and_then(|status| status.code())),
            }
        });
        if let Some(code) = early_end.await? {
            return Err(unexpected_exit(arguments, code));
        }
        // The process might have ended a moment ago.
        let _ = child.kill().await;
        if !self.is_silent() && std::io::stderr().is_terminal() {
            progress::clear_line();
            // The progress bar of the killed process is on the current line.
            let _ = std::io::stderr().lock().write_all(b"\n");
        }
        Ok(self.sandbox.counts().messages)
    }

    /// Waits for a future, unless a signal stops the demo.
    async fn wait_or_interrupt<T>(&self, future: impl Future<Output = T>) -> Result<T, CommandFailure> {
        let mut interrupt = self.interrupt.clone();
        tokio::select! {
            done = future => Ok(done),
            _ = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => Err(self.signal_failure()),
        }
    }

    fn check_interrupt(&self) -> Result<(), CommandFailure> {
        match *self.interrupt.borrow() {
            Interrupt::None => Ok(()),
            Interrupt::Graceful(_) | Interrupt::Immediate(_) => Err(self.signal_failure()),
        }
    }

    fn signal_failure(&self) -> CommandFailure {
        let signal = match *self.interrupt.borrow() {
            Interrupt::Graceful(signal) | Interrupt::Immediate(signal) => signal,
            Interrupt::None => process::SIGINT,
        };
        let folder = self.folder.path.display();
        let message =
            format!("{CANCELLED}The demo was stopped. Recipients got no messages; the demo's files are in `{folder}`.");
        CommandFailure::new(exit::SIGNAL.saturating_add(signal), message)
    }
}

fn unexpected_exit(arguments: &[&str], code: Option<i32>) -> CommandFailure {
    let command = arguments.first().unwrap_or(&"");
    let outcome = code.map_or_else(|| "did not end as expected".to_owned(), |code| format!("exited with code {code}"));
    CommandFailure::new(exit::BUG, format!("the demo command `{command}` {outcome}; the demo files were kept"))
}

/// Describes the numbers of messages and duplicates that the gateway received.
fn describe_received_messages(ReceivedMessages { sent, duplicates }: ReceivedMessages) -> StyledLine {
    let figures = strong(format!("{} sent, {} duplicates", format_thousands(sent), format_thousands(duplicates)));
    match (sent, duplicates) {
        (RECIPIENTS, 0) => StyledLine::success([figures]),
        _ => StyledLine::failure([figures]),
    }
}

/// Prints where the report and the other files are, and returns the exit code.
fn report_demo_result(output: &Output, folder: &DemoFolder, figures: &DemoFigures) -> u8 {
    let DemoFigures { sent_before_kill, received } = figures;
    let is_proven = *received == ReceivedMessages { sent: RECIPIENTS, duplicates: 0 };
    let code = if is_proven { exit::SUCCESS } else { exit::BUG };
    if output.json {
        let mut object = json!({
            "folder": folder.path, "recipients": RECIPIENTS, "sent_before_kill": sent_before_kill,
            "sent": received.sent, "duplicates": received.duplicates, "journal": folder.file(JOURNAL_FILE),
            "report": folder.file(REPORT_FILE), "exit": code,
        });
        if !is_proven {
            object["error"] = "the gateway did not receive each message exactly once, which is a bug".into();
        }
        output.print_object(&object);
        return code;
    }
    let report = std::path::absolute(folder.file(REPORT_FILE)).unwrap_or_else(|_| folder.file(REPORT_FILE));
    let mut text = StyledText::new();
    text.add_blank();
    text.push(StyledLine::new([plain("report: "), plain(report.display().to_string())]).unbroken());
    text.push(StyledLine::new([plain("files: "), plain(folder.shell_path())]).unbroken());
    text.push(StyledLine::next_step(output.command("init autumn --from LIST")));
    output.print_done(text, code);
    code
}

/// The messages that a gateway accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ReceivedMessages {
    /// The number of messages.
    sent: u64,
    /// The number of messages to a phone number that had already received one.
    duplicates: u64,
}

/// A line of the journal, with the members that matter here.
#[derive(Deserialize)]
struct JournalLine<'l> {
    event: &'l str,
    phone: Option<&'l str>,
    #[serde(default)]
    success: bool,
}

/// Counts the messages in a journal.
///
/// # Errors
/// If the journal cannot be read, or a line cannot be parsed.
fn count_messages(journal: &Path) -> io::Result<ReceivedMessages> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for line in BufReader::new(File::open(journal)?).lines() {
        let line = line?;
        let JournalLine { event, phone, success } = serde_json::from_str(&line)?;
        if let ("operation", Some(phone), true) = (event, phone, success) {
            *counts.entry(phone.to_owned()).or_default() += 1;
        }
    }
    let sent = counts.values().sum();
    Ok(ReceivedMessages { sent, duplicates: sent - counts.len() as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_messages_and_duplicate_numbers_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal.jsonl");
        let operation = |phone: &str, success: bool| {
            format!("{{\"event\":\"operation\",\"type\":\"sms\",\"phone\":\"{phone}\",\"success\":{success}}}\n")
        };
        let status_event = "{\"event\":\"operation\",\"type\":\"status\",\"success\":true}\n".to_owned();
        let lines =
            ["{\"event\":\"envelope\",\"operations\":3}\n".to_owned(), status_event, operation("380500000001", true)];
        std::fs::write(&journal, lines.concat() + &operation("380500000002", false)).unwrap();
        assert_eq!(count_messages(&journal).unwrap(), ReceivedMessages { sent: 1, duplicates: 0 });
        let text = std::fs::read_to_string(&journal).unwrap() + &operation("380500000001", true);
        std::fs::write(&journal, text).unwrap();
        assert_eq!(count_messages(&journal).unwrap(), ReceivedMessages { sent: 2, duplicates: 1 });
    }
}
