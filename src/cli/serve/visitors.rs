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
use crate::cli::failure::Failure;
use crate::cli::table::{Cell, Table};
use crate::cli::text::{Line, Text, dim, plain, strong};
use crate::report::plural;
use crate::web::{Invited, LINK, Visitors};

/// How long a server may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(1);

/// Creates a sign-in link to the server that was started last.
pub(super) fn link(context: &Context, args: &LinkArgs) -> Result<u8, Failure> {
    let (visitors, now) = (Visitors::of(&context.state()?), Timestamp::now());
    let known = visitors.address().map_err(|error| unwritable(context, &visitors, &error))?;
    let Some(address) = known else {
        let serve = context.output.command("serve");
        return Err(
            Failure::wrong("no server has used this state folder yet").with_help(format!("start a server: `{serve}`"))
        );
    };
    let link = link_at(&visitors, &address, (&args.name, args.decide), now);
    let url = link.map_err(|error| unwritable(context, &visitors, &error))?;
    if is_away(&address) {
        context
            .output
            .note(&format!("no server is listening at {address} now; the link works while the server is running"));
    }
    if context.output.json {
        context.output.object(&json!({ "url": url, "for": args.name, "decides": args.decide, "exit": exit::FINE }));
    } else {
        let can = if args.decide { "can view and decide" } else { "can only view" };
        let mut text = Text::new();
        text.push(Line::new([strong(url)]).whole());
        let (name, hours) = (&args.name, LINK.as_hours());
        text.line(2, [plain(format!("{name} {can}. The link works once and expires in {hours} hours."))]);
        context.output.result(text);
    }
    Ok(exit::FINE)
}

/// A sign-in link to the dashboard at an address.
pub(super) fn link_at(
    visitors: &Visitors,
    address: &str,
    (name, decides): (&str, bool),
    now: Timestamp,
) -> io::Result<String> {
    Ok(format!("{address}/enter/{}", visitors.invite(name, decides, now)?))
}

/// Shows who can sign in.
pub(super) fn list(context: &Context) -> Result<u8, Failure> {
    let visitors = Visitors::of(&context.state()?);
    let all = visitors.list(Timestamp::now()).map_err(|error| unwritable(context, &visitors, &error))?;
    if context.output.json {
        let objects: Vec<_> = all.iter().map(object).collect();
        context.output.object(&objects);
        return Ok(exit::FINE);
    }
    let next = context.output.command("serve link --for NAME");
    let mut text = Text::new();
    match all.is_empty() {
        true => text.line(0, [plain("no one can sign in to the dashboard")]),
        false => text.extend(Table::new(["name", "access", "links", "sessions", "until"], all.iter().map(row))),
    }
    text.push(Line::next(next));
    context.output.result(text);
    Ok(exit::FINE)
}

fn object(Invited { name, decides, links, sessions, until }: &Invited) -> serde_json::Value {
    json!({ "name": name, "decides": decides, "links": links, "sessions": sessions, "until": until.to_string() })
}

fn row(Invited { name, decides, links, sessions, until }: &Invited) -> [Cell; 5] {
    let access = if *decides { "view and decide" } else { "view" };
    let (links, sessions) = (links.to_string(), sessions.to_string());
    [strong(name.as_str()).into(), access.into(), links.into(), sessions.into(), dim(minute(*until)).into()]
}

/// Ends the links and sessions of a person.
pub(super) fn revoke(context: &Context, name: &str) -> Result<u8, Failure> {
    let visitors = Visitors::of(&context.state()?);
    let revoked = visitors.revoke(name, Timestamp::now());
    let revoked = revoked.map_err(|error| unwritable(context, &visitors, &error))?;
    if context.output.json {
        context.output.object(&json!({ "name": name, "revoked": revoked, "exit": exit::FINE }));
    } else if revoked == 0 {
        context.output.done(format!("{name} had no links or sessions; nothing changed\n"), exit::FINE);
    } else {
        let ended = plural(revoked as u64, "link or session").replace("link or sessions", "links and sessions");
        let line = Line::success([plain("revoked "), strong(ended), plain(format!(" of {name}"))]);
        context.output.done(line, exit::FINE);
    }
    Ok(exit::FINE)
}

/// Whether no server listens there, as far as this machine can tell.
fn is_away(address: &str) -> bool {
    let known = Url::parse(address).ok().and_then(|url| url.socket_addrs(|| None).ok());
    let Some(addresses) = known else { return false };
    !addresses.iter().any(|address| TcpStream::connect_timeout(address, PATIENCE).is_ok())
}

fn unwritable(context: &Context, visitors: &Visitors, error: &io::Error) -> Failure {
    Failure::storage(closed(context, visitors, error))
}

/// Why nobody can sign in, and what to do about it.
pub(super) fn closed(context: &Context, visitors: &Visitors, error: &io::Error) -> String {
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
