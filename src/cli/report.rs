//! `campaign report`: a run as a page that stands alone, at any time.

use jiff::Timestamp;
use serde_json::json;

use super::args::ReportArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::page;
use crate::ledger::Ledger;
use crate::report::{RunStanding, zone_of};
use crate::runs::{self, blocking};
use crate::web::files::{FirstMessages, ReportPage, report_page};
use crate::web::run_page::RunPage;

/// How many messages are shown.
const SHOWN: usize = 5;

pub(super) async fn report(context: &Context, args: ReportArgs) -> Result<u8, Failure> {
    page::check_place(&args.out)?;
    let (ledger, run) = context.named_run(&args.run).await?;
    runs::judge_results(ledger.as_ref(), &run, &context.observer).await?;
    let standing = RunStanding::whole(ledger.as_ref(), run).await?;
    let first = first_messages(ledger.as_ref(), &standing, args.page.unmasked).await?;
    let zone = zone_of(ledger.as_ref(), &standing.view.run).await;
    let options = context.output.options.clone();
    let command = move |arguments: String| options.command(arguments);
    let page =
        RunPage { standing: &standing, now: Timestamp::now(), left: None, zone: &zone, command: &command, rows: None };
    let html = report_page(&ReportPage { page, first: first.as_ref() }, args.page.language())?;
    page::write(&args.out, &html)?;
    let name = standing.view.run.name();
    if context.output.json {
        let mut told = standing.report_json();
        told["html"] = json!(args.out);
        told["exit"] = exit::FINE.into();
        context.output.object(&told);
    } else {
        let next = context.output.command(format!("status {name}"));
        context.output.done(&format!("{name} as a page: {}\nnext: {next}\n", args.out.display()), exit::FINE);
    }
    if args.page.open {
        page::open(&context.output, &args.out).await;
    }
    Ok(exit::FINE)
}

/// The first messages of a run, of which the copies are there; of lookups, code calls and single messages there are none.
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
