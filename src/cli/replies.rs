//! `campaign replies`: the replies of the recipients of a run.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};

use serde_json::json;

use super::args::RepliesArgs;
use super::clock::second;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::screen::{Screen, Syntax};
use super::text::{Line, Text, copied, dim, joined, plain, strong};
use crate::ledger::{Ledger, Run};
use crate::private::{self, Existing};
use crate::report::{ResultsError, UnclearReply, thousands, unclear_replies, write_replies};
use crate::runs::Error;

pub(super) async fn replies(context: &Context, args: RepliesArgs) -> Result<u8, Failure> {
    let (ledger, run) = context.named_run(&args.run).await?;
    if args.review {
        return review(context, ledger.as_ref(), &run).await;
    }
    let Some(path) = args.out.filter(|out| out.as_os_str() != "-") else {
        let out = BufWriter::new(Screen::of(Syntax::Csv));
        return match write_replies(ledger.as_ref(), &run, out).await {
            // The reader has closed.
            Err(ResultsError::Write { error, .. }) if error.kind() == ErrorKind::BrokenPipe => Ok(exit::FINE),
            written => written.map(|_| exit::FINE).map_err(|error| Error::from(error).into()),
        };
    };
    let refused = |error: io::Error| {
        let help = if error.kind() == ErrorKind::AlreadyExists { "; choose a new file" } else { "" };
        Failure::wrong(format!("cannot write `{}`: {error}{help}", path.display()))
    };
    if path.exists() {
        return Err(refused(ErrorKind::AlreadyExists.into()));
    }
    let file: File = private::file(&path, Existing::Emptied).map_err(refused)?;
    let mut out = BufWriter::new(file);
    let count = write_replies(ledger.as_ref(), &run, &mut out).await.map_err(Error::from)?;
    out.flush().and_then(|()| out.get_ref().sync_all()).map_err(refused)?;
    if context.output.json {
        context.output.object(&json!({ "run": run.name(), "replies": path, "count": count, "exit": exit::FINE }));
    } else {
        let what = if count == 1 { "reply".to_owned() } else { "replies".to_owned() };
        let what = format!("{} {what} to {}: ", thousands(count), run.name());
        let line = Line::success([plain(what), copied(path.display().to_string())]);
        context.output.done(line.whole(), exit::FINE);
    }
    Ok(exit::FINE)
}

/// Shows the replies that look like an opt-out, each with the command that records it.
async fn review(context: &Context, ledger: &dyn Ledger, run: &Run) -> Result<u8, Failure> {
    let replies = unclear_replies(ledger, run).await.map_err(Error::from)?;
    let add = |reply: &UnclearReply| context.output.command(format!("suppress add +{}", reply.phone));
    if context.output.json {
        let reply = |reply: &UnclearReply| {
            let UnclearReply { row, phone, channel, at, text } = reply;
            json!({
                "row": row.get(), "phone": phone.to_string(), "channel": channel, "at": format!("{at:.3}"), "text": text,
                "suppress": add(reply),
            })
        };
        let replies: Vec<_> = replies.iter().map(reply).collect();
        context.output.object(&json!({ "run": run.name(), "review": replies, "exit": exit::FINE }));
        return Ok(exit::FINE);
    }
    let mut text = Text::new();
    for reply in &replies {
        let UnclearReply { row, phone, at, text: said, .. } = reply;
        let parts = [
            vec![strong(format!("row {row}"))],
            vec![plain(format!("+{phone}"))],
            vec![dim(second(*at))],
            vec![plain(said.as_str())],
        ];
        text.push(Line::new(joined(parts, " · ")));
        text.push(Line::next(add(reply)).indented(2));
    }
    let count = match replies.len() {
        0 => "no replies to review".to_owned(),
        1 => "1 reply to review".to_owned(),
        count => format!("{} replies to review", thousands(count as u64)),
    };
    text.line(0, [strong(run.name()), plain(format!(": {count}"))]);
    context.output.result(text);
    Ok(exit::FINE)
}
