//! `campaign replies`: the replies of a run's recipients, and those that look like an opt-out.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write as _};

use serde_json::json;

use super::args::RepliesArgs;
use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use super::output::{RowOutput, RowSyntax};
use super::text::{StyledLine, StyledText, copyable, dim, join_spans, plain, strong};
use campaign_core::domain::{Phone, Purpose};
use campaign_core::private;
use campaign_core::private::ExistingFile;
use campaign_engine::report::{
    ResultsError, UnclearReply, find_unclear_replies, format_local_second, format_thousands, write_replies,
};
use campaign_ledger::{Ledger, Run};
use campaign_runs::Error;

pub(super) async fn show_replies(context: &Context, args: RepliesArgs) -> Result<u8, CommandFailure> {
    let (ledger, run) = context.find_run(&args.run).await?;
    if args.review {
        return review_opt_outs(context, ledger.as_ref(), &run).await;
    }
    let Some(path) = args.out.filter(|out| out.as_os_str() != "-") else {
        let out = BufWriter::new(RowOutput::stdout(RowSyntax::Csv));
        return match write_replies(ledger.as_ref(), &run, out).await {
            // The reader has closed.
            Err(ResultsError::Write { error, .. }) if error.kind() == ErrorKind::BrokenPipe => Ok(exit::SUCCESS),
            written => written.map(|_| exit::SUCCESS).map_err(|error| Error::from(error).into()),
        };
    };
    let refused = |error: io::Error| {
        let help = if error.kind() == ErrorKind::AlreadyExists { "; choose a new file" } else { "" };
        CommandFailure::invalid(format!("cannot write `{}`: {error}{help}", path.display()))
    };
    if path.exists() {
        return Err(refused(ErrorKind::AlreadyExists.into()));
    }
    let file: File = private::open_file(&path, ExistingFile::Truncate).map_err(refused)?;
    let mut out = BufWriter::new(file);
    let count = write_replies(ledger.as_ref(), &run, &mut out).await.map_err(Error::from)?;
    out.flush().and_then(|()| out.get_ref().sync_all()).map_err(refused)?;
    if context.output.json {
        context
            .output
            .print_object(&json!({ "run": run.name(), "replies": path, "count": count, "exit": exit::SUCCESS }));
    } else {
        let what = if count == 1 { "reply".to_owned() } else { "replies".to_owned() };
        let what = format!("{} {what} to {}: ", format_thousands(count), run.name());
        let line = StyledLine::success([plain(what), copyable(path.display().to_string())]);
        context.output.print_done(line.unbroken(), exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
}

/// Prints the replies that look like an opt-out, each with the command that records it.
async fn review_opt_outs(context: &Context, ledger: &dyn Ledger, run: &Run) -> Result<u8, CommandFailure> {
    let replies = find_unclear_replies(ledger, run).await.map_err(Error::from)?;
    // An answer to a service message rejects such messages too.
    let scope = if run.suppression.purpose == Purpose::Service { " --scope all" } else { "" };
    let add_command = |phone: &Phone| context.output.command(format!("suppress add +{phone}{scope}"));
    if context.output.json {
        let reply_json = |UnclearReply { row, phone, channel, at, text }: &UnclearReply| {
            json!({
                "row": row.get(), "phone": phone.to_string(), "channel": channel, "at": format!("{at:.3}"), "text": text,
                "suppress": add_command(phone),
            })
        };
        let replies: Vec<_> = replies.iter().map(reply_json).collect();
        context.output.print_object(&json!({ "run": run.name(), "review": replies, "exit": exit::SUCCESS }));
        return Ok(exit::SUCCESS);
    }
    let mut text = StyledText::new();
    for reply in &replies {
        let UnclearReply { row, phone, channel: _, at, text: reply_text } = reply;
        let parts = [
            vec![strong(format!("row {row}"))],
            vec![plain(format!("+{phone}"))],
            vec![dim(format_local_second(*at))],
            vec![plain(reply_text.as_str())],
        ];
        text.push(StyledLine::new(join_spans(parts, " · ")));
        text.push(StyledLine::next_step(add_command(phone)).with_indent(2));
    }
    let count = match replies.len() {
        0 => "no replies to review".to_owned(),
        1 => "1 reply to review".to_owned(),
        count => format!("{} replies to review", format_thousands(count as u64)),
    };
    text.add_line(0, [strong(run.name()), plain(format!(": {count}"))]);
    context.output.print_result(text);
    Ok(exit::SUCCESS)
}
