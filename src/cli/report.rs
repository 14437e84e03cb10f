//! `campaign report`: writes a run as a self-contained HTML page.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::json;

use super::args::ReportArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::page;
use super::text::{Line, Text, copied, plain};
use crate::ledger::{Ledger, Run};
use crate::report::{RunStanding, zone_of};
use crate::runs::{self, blocking};
use crate::web::files::{FirstMessages, ReportPage, report_page};
use crate::web::run_page::RunPage;

/// The number of messages on the page.
const SHOWN: usize = 5;

pub(super) async fn report(context: &Context, args: ReportArgs) -> Result<u8, Failure> {
    if let Some(out) = &args.out {
        page::check_place(out)?;
    }
    let (ledger, run) = context.named_run(&args.run).await?;
    let out = match args.out {
        Some(out) => out,
        None => default_place(ledger.as_ref(), &run).await?,
    };
    runs::judge_results(ledger.as_ref(), &run, &context.observer).await?;
    let waiting = context.output.waiting("Preparing the report…");
    let standing = RunStanding::whole(ledger.as_ref(), run).await?;
    let first = first_messages(ledger.as_ref(), &standing, args.page.unmasked).await?;
    let zone = zone_of(ledger.as_ref(), &standing.view.run).await;
    let options = context.output.options.clone();
    let command = move |arguments: String| options.command(arguments);
    let page =
        RunPage { standing: &standing, now: Timestamp::now(), left: None, zone: &zone, command: &command, rows: None };
    let html = report_page(&ReportPage { page, first: first.as_ref() }, args.page.language())?;
    page::write(&out, &html)?;
    drop(waiting);
    let name = standing.view.run.name();
    if context.output.json {
        let mut told = standing.report_json();
        told["html"] = json!(out);
        told["exit"] = exit::FINE.into();
        context.output.object(&told);
    } else {
        let next = context.output.command(format!("status {name}"));
        let mut text = Text::new();
        text.push(Line::success([plain(format!("report of {name}: ")), copied(out.display().to_string())]).whole());
        text.push(Line::next(next));
        context.output.done(text, exit::FINE);
    }
    if args.page.open {
        page::open(&context.output, &out).await;
    }
    Ok(exit::FINE)
}

/// The default path of a run's report: `NAME.report.html` beside its results. If a later run wrote its results to the same
/// file, the name contains the number of the run, so that the report of the later run is not replaced.
async fn default_place(ledger: &dyn Ledger, run: &Run) -> Result<PathBuf, Failure> {
    let Some(results) = &run.results else {
        let place = PathBuf::from(format!("{}.report.html", run.name()));
        return page::check_place(&place).map(|()| place);
    };
    let path = Path::new(results);
    if runs::is_gone(ledger, run, path).await {
        return Err(Failure::wrong(format!(
            "the folder of `{results}` no longer exists; choose a file with `--out FILE`"
        )));
    }
    let place = match runs::later_at(ledger, run, results).await? {
        None => path.with_extension("report.html"),
        Some(_) => path.with_file_name(format!("{}.report.html", run.name())),
    };
    page::check_place(&place)?;
    Ok(place)
}

/// The first messages of a run that still has its copies. Lookups, code calls and single messages have none.
async fn first_messages(
    ledger: &dyn Ledger,
    standing: &RunStanding,
    unmasked: bool,
) -> Result<Option<FirstMessages>, Failure> {
    let run = &standing.view.run;
    if run.purged_at.is_some() || run.shared {
        return Ok(None);
    }
    let (frozen, prepared) = runs::thaw(ledger, run).await?;
    let left_out = ledger.left_out(run.key).await?.rows();
    let last = run.last_row();
    Ok(Some(
        blocking(move || FirstMessages::read(&frozen.brief, prepared, (&left_out, last), (SHOWN, unmasked))).await??,
    ))
}
