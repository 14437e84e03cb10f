//! `campaign report`: writes a run as a self-contained HTML page. Also how every command checks the path of a page or
//! of evidence, writes the file, and opens a page in a browser.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::process::Command;

use super::args::ReportArgs;
use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use super::output::Output;
use super::text::{StyledLine, StyledText, copyable, plain};
use campaign_core::finding::quote_for_shell;
use campaign_core::{private, regular_file};
use campaign_engine::delivery::FrozenInputs;
use campaign_engine::report::{RunReport, load_display_zone};
use campaign_ledger::{Ledger, Run};
use campaign_runs::run_blocking;
use campaign_server::web::files::{FirstMessages, ReportPage, render_report_page};
use campaign_server::web::run_page::RunPage;

/// The number of messages on the page.
const PAGE_SAMPLES: usize = 5;

pub(super) async fn write_report(context: &Context, args: ReportArgs) -> Result<u8, CommandFailure> {
    if let Some(out) = &args.out {
        check_page_path(out)?;
    }
    let (ledger, run) = context.find_run(&args.run).await?;
    let out = match args.out {
        Some(out) => out,
        None => default_report_path(ledger.as_ref(), &run).await?,
    };
    campaign_runs::report_results_conflict(ledger.as_ref(), &run, &context.observer).await?;
    let waiting = context.output.show_spinner("Preparing the report…");
    let report = RunReport::load_with_figures(ledger.as_ref(), run).await?;
    let first = load_first_messages(ledger.as_ref(), &report, args.page.unmasked).await?;
    let zone = load_display_zone(ledger.as_ref(), &report.view.run).await;
    let options = context.output.options.clone();
    let command = move |arguments: String| options.command(arguments);
    let title = load_title(ledger.as_ref(), &report.view.run).await;
    let page = RunPage {
        report: &report,
        title: title.as_deref(),
        now: Timestamp::now(),
        left: None,
        zone: &zone,
        command: &command,
        rows: None,
    };
    let html = render_report_page(&ReportPage { page, first: first.as_ref() }, args.page.page_language())?;
    write_page(&out, &html)?;
    drop(waiting);
    let name = report.view.run.name();
    if context.output.json {
        let mut object = report.to_report_json();
        object["html"] = json!(out);
        object["exit"] = exit::SUCCESS.into();
        context.output.print_object(&object);
    } else {
        let next = context.output.command(format!("status {name}"));
        let mut text = StyledText::new();
        text.push(
            StyledLine::success([plain(format!("report of {name}: ")), copyable(out.display().to_string())]).unbroken(),
        );
        text.push(StyledLine::next_step(next));
        context.output.print_done(text, exit::SUCCESS);
    }
    if args.page.open {
        open_page(&context.output, &out).await;
    }
    Ok(exit::SUCCESS)
}

/// Loads the title of a run's campaign, if the campaign has a title and the run still has copies of its inputs.
async fn load_title(ledger: &dyn Ledger, run: &Run) -> Option<String> {
    if run.shared || run.purged_at.is_some() {
        return None;
    }
    FrozenInputs::load_for_run(ledger, run).await.ok()?.brief.title
}

/// Chooses the default path of a run's report: `NAME.report.html` next to the results of the run. If a later run wrote
/// results to the same file, the name contains the run number, so the later run's report is not replaced.
async fn default_report_path(ledger: &dyn Ledger, run: &Run) -> Result<PathBuf, CommandFailure> {
    let Some(results) = &run.results else {
        let place = PathBuf::from(format!("{}.report.html", run.name()));
        return check_page_path(&place).map(|()| place);
    };
    let path = Path::new(results);
    if campaign_runs::is_folder_gone(ledger, run, path).await {
        return Err(CommandFailure::invalid(format!(
            "the folder that contained `{results}` no longer exists; choose a file with `--out FILE`"
        )));
    }
    let place = match campaign_runs::find_later_run(ledger, run, results).await? {
        None => path.with_extension("report.html"),
        Some(_) => path.with_file_name(format!("{}.report.html", run.name())),
    };
    check_page_path(&place)?;
    Ok(place)
}

/// Loads the first messages of a run that still has copies of its inputs. Runs of lookups, code calls and single
/// messages have no such messages.
async fn load_first_messages(
    ledger: &dyn Ledger,
    report: &RunReport,
    unmasked: bool,
) -> Result<Option<FirstMessages>, CommandFailure> {
    let run = &report.view.run;
    if run.purged_at.is_some() || run.shared {
        return Ok(None);
    }
    let (frozen, prepared) = campaign_runs::open_copies(ledger, run).await?;
    let left_out = ledger.load_excluded_rows(run.key).await?.rows();
    let last = run.last_row();
    Ok(Some(
        run_blocking(move || {
            FirstMessages::read_first(&frozen.brief, prepared, &left_out, last, PAGE_SAMPLES, unmasked)
        })
        .await??,
    ))
}

/// The tag near the beginning of every page that this program writes.
const GENERATOR_TAG: &str = "<meta name=\"generator\" content=\"campaign\">";
/// The number of bytes in which the tag is searched for.
const TAG_SEARCH_BYTES: u64 = 4096;
/// How long to wait for an error of the program that opens files.
const OPENER_TIMEOUT: Duration = Duration::from_secs(2);

/// Checks that a page can be written to a path.
///
/// # Errors
/// If the path is `-`, a folder, or a file that must not be replaced.
pub(super) fn check_page_path(path: &Path) -> Result<(), CommandFailure> {
    check_output_path(path, GENERATOR_TAG, "a page written by campaign")
}

/// Checks that a file with this tag near its beginning can be written to a path.
///
/// # Errors
/// If the path is `-`, a folder, or a file that must not be replaced.
pub(super) fn check_output_path(path: &Path, tag: &str, what: &str) -> Result<(), CommandFailure> {
    if path.as_os_str() == "-" {
        return Err(CommandFailure::invalid(
            "a page cannot be written to standard output; specify a file, for example `preview.html`",
        ));
    }
    if path.is_dir() {
        return Err(CommandFailure::invalid(format!("`{}` is a folder; choose a file in it", path.display())));
    }
    match is_replaceable(path, tag) {
        Ok(true) => Ok(()),
        Ok(false) => Err(CommandFailure::invalid(format!("`{}` already exists and is not {what}", path.display()))
            .with_help("choose another file")),
        Err(error) => Err(unwritable_page(path, &error)),
    }
}

/// Whether a path can be overwritten: there is no file, an empty file, or a file with this tag near its beginning.
fn is_replaceable(path: &Path, tag: &str) -> io::Result<bool> {
    let mut beginning = Vec::new();
    match regular_file::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        opened => opened?.take(TAG_SEARCH_BYTES).read_to_end(&mut beginning)?,
    };
    Ok(beginning.is_empty() || String::from_utf8_lossy(&beginning).contains(tag))
}

/// Writes a page to a path.
///
/// # Errors
/// If the page cannot be written.
pub(super) fn write_page(path: &Path, page: &str) -> Result<(), CommandFailure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = (|| {
        // The file is private from the start.
        let mut file = tempfile::Builder::new().prefix(".campaign-page-").tempfile_in(folder)?;
        file.write_all(page.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        private::sync_entry(path)
    })();
    written.map_err(|error| unwritable_page(path, &error))
}

fn unwritable_page(path: &Path, error: &io::Error) -> CommandFailure {
    CommandFailure::invalid(format!("cannot write the page `{}`: {error}", path.display()))
}

/// Opens a page with the default program. If that is impossible, prints the reason and the path of the page.
pub(super) async fn open_page(output: &Output, path: &Path) {
    if let Err(why) = try_open_page(path).await {
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let page = quote_for_shell(&whole);
        output.print_note(&format!("the page was not opened, because {why}; open {page} in a browser"));
    }
}

/// Opens a page with the default program.
///
/// # Errors
/// If the page cannot be opened; the error is the reason.
pub(super) async fn try_open_page(path: &Path) -> Result<(), String> {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let command = opener_command(&whole).ok_or("no graphical display is available")?;
    start_opener(command).await
}

/// The command that opens a file. `None` if there is no graphical display.
fn opener_command(path: &PathBuf) -> Option<Command> {
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        // Not `cmd`, which would interpret special characters in the file name.
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        let screen = ["WAYLAND_DISPLAY", "DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
        screen.then(|| Command::new("xdg-open"))?
    };
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Some(command)
}

/// Starts the command. The command might run until the browser exits.
async fn start_opener(mut command: Command) -> Result<(), String> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|error| format!("`{program}` cannot be started: {error}"))?;
    match tokio::time::timeout(OPENER_TIMEOUT, child.wait()).await {
        Ok(Ok(status)) if !status.success() => Err(format!("`{program}` failed")),
        _ => Ok(()),
    }
}
