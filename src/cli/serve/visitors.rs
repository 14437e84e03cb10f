//! Sign-in links and sessions of the dashboard.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::Url;
use serde_json::json;

use crate::cli::args::LinkArgs;
use crate::cli::clock::minute;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::CommandFailure;
use crate::cli::table::{TableCell, TerminalTable};
use crate::cli::text::{StyledLine, StyledText, dim, plain, strong};
use crate::report::format_count;
use crate::web::{LINK_LIFETIME, SignInEntry, Visitors};

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Creates a sign-in link to the server that was started last.
pub(super) fn print_link(context: &Context, args: &LinkArgs) -> Result<u8, CommandFailure> {
    let (visitors, now) = (Visitors::in_state_folder(&context.state_folder()?), Timestamp::now());
    let known = visitors.read_address().map_err(|error| unwritable_failure(context, &visitors, &error))?;
    let Some(address) = known else {
        let serve = context.output.command("serve");
        return Err(CommandFailure::invalid("no server has used this state folder yet")
            .with_help(format!("start a server: `{serve}`")));
    };
    let link = create_link(&visitors, &address, (&args.name, args.decide), now);
    let url = link.map_err(|error| unwritable_failure(context, &visitors, &error))?;
    if is_unreachable(&address) {
        context.output.print_note(&format!(
            "no server is listening at {address} now; the link works while the server is running"
        ));
    }
    if context.output.json {
        context
            .output
            .print_object(&json!({ "url": url, "for": args.name, "decides": args.decide, "exit": exit::SUCCESS }));
    } else {
        let can = if args.decide { "can view and decide" } else { "can only view" };
        let mut text = StyledText::new();
        text.push(StyledLine::new([strong(url)]).unbroken());
        let (name, hours) = (&args.name, LINK_LIFETIME.as_hours());
        text.add_line(2, [plain(format!("{name} {can}. The link works once and expires in {hours} hours."))]);
        context.output.print_result(text);
    }
    Ok(exit::SUCCESS)
}

/// A sign-in link to the dashboard at an address.
pub(super) fn create_link(
    visitors: &Visitors,
    address: &str,
    (name, decides): (&str, bool),
    now: Timestamp,
) -> io::Result<String> {
    Ok(format!("{address}/enter/{}", visitors.create_link(name, decides, now)?))
}

/// Shows who can sign in.
pub(super) fn list_visitors(context: &Context) -> Result<u8, CommandFailure> {
    let visitors = Visitors::in_state_folder(&context.state_folder()?);
    let all =
        visitors.list_visitors(Timestamp::now()).map_err(|error| unwritable_failure(context, &visitors, &error))?;
    if context.output.json {
        let objects: Vec<_> = all.iter().map(visitor_json).collect();
        context.output.print_object(&objects);
        return Ok(exit::SUCCESS);
    }
    let next = context.output.command("serve link --for NAME");
    let mut text = StyledText::new();
    match all.is_empty() {
        true => text.add_line(0, [plain("no one can sign in to the dashboard")]),
        false => text
            .extend(TerminalTable::new(["name", "access", "links", "sessions", "until"], all.iter().map(visitor_row))),
    }
    text.push(StyledLine::next_step(next));
    context.output.print_result(text);
    Ok(exit::SUCCESS)
}

fn visitor_json(SignInEntry { name, decides, links, sessions, until }: &SignInEntry) -> serde_json::Value {
    json!({ "name": name, "decides": decides, "links": links, "sessions": sessions, "until": until.to_string() })
}

fn visitor_row(SignInEntry { name, decides, links, sessions, until }: &SignInEntry) -> [TableCell; 5] {
    let access = if *decides { "view and decide" } else { "view" };
    let (links, sessions) = (links.to_string(), sessions.to_string());
    [strong(name.as_str()).into(), access.into(), links.into(), sessions.into(), dim(minute(*until)).into()]
}

/// Ends the links and sessions of a person.
pub(super) fn revoke_access(context: &Context, name: &str) -> Result<u8, CommandFailure> {
    let visitors = Visitors::in_state_folder(&context.state_folder()?);
    let revoked = visitors.revoke_visitor(name, Timestamp::now());
    let revoked = revoked.map_err(|error| unwritable_failure(context, &visitors, &error))?;
    if context.output.json {
        context.output.print_object(&json!({ "name": name, "revoked": revoked, "exit": exit::SUCCESS }));
    } else if revoked == 0 {
        context.output.print_done(format!("{name} had no links or sessions; nothing changed\n"), exit::SUCCESS);
    } else {
        let ended = format_count(revoked as u64, "link or session").replace("link or sessions", "links and sessions");
        let line = StyledLine::success([plain("revoked "), strong(ended), plain(format!(" of {name}"))]);
        context.output.print_done(line, exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
}

/// Whether no server listens there, as far as this machine can tell.
fn is_unreachable(address: &str) -> bool {
    let known = Url::parse(address).ok().and_then(|url| url.socket_addrs(|| None).ok());
    let Some(addresses) = known else { return false };
    !addresses.iter().any(|address| TcpStream::connect_timeout(address, CONNECT_TIMEOUT).is_ok())
}

fn unwritable_failure(context: &Context, visitors: &Visitors, error: &io::Error) -> CommandFailure {
    CommandFailure::storage_failure(describe_closed(context, visitors, error))
}

/// Why nobody can sign in, and what to do about it.
pub(super) fn describe_closed(context: &Context, visitors: &Visitors, error: &io::Error) -> String {
    let (file, link) = (visitors.file().display(), context.output.command("serve link --for NAME"));
    let remedy = match error.kind() {
        io::ErrorKind::InvalidData => {
            format!("delete the file, which signs everyone out, and create new sign-in links with `{link}`")
        }
        _ => {
            "check that the file and its folder are readable and writable, then start `campaign serve` again".to_owned()
        }
    };
    format!("cannot read or write the dashboard's sign-in file `{file}`: {error}; {remedy}")
}
