//! `campaign report`: writes a run as a self-contained HTML page.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::json;

use super::args::ReportArgs;
use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use super::page_file::{check_page_path, open_page, write_page};
use super::status::add_replacing_run;
use super::text::{StyledLine, StyledText, copyable, plain};
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
    let spinner = context.output.show_spinner("Preparing the report…");
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
        time_left: None,
        zone: &zone,
        command: &command,
        rows: None,
    };
    let html = render_report_page(&ReportPage { page, first: first.as_ref() }, args.page.page_language())?;
    write_page(&out, &html)?;
    drop(spinner);
    let name = report.view.run.name();
    if context.output.json {
        let mut object = report.to_report_json();
        add_replacing_run(&mut object, ledger.as_ref(), &report.view.run).await;
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
        let report = PathBuf::from(format!("{}.report.html", run.name()));
        return check_page_path(&report).map(|()| report);
    };
    let path = Path::new(results);
    if campaign_runs::is_folder_gone(ledger, run, path).await {
        return Err(CommandFailure::invalid(format!(
            "the folder that contained `{results}` no longer exists; choose a file with `--out FILE`"
        )));
    }
    let report = match campaign_runs::find_later_run(ledger, run, results).await? {
        None => path.with_extension("report.html"),
        Some(_) => path.with_file_name(format!("{}.report.html", run.name())),
    };
    check_page_path(&report)?;
    Ok(report)
}

/// Loads the first messages of a run that still has copies of its inputs. Returns `None` for a purged run, and for the
/// shared runs of lookups, code calls and single messages.
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
