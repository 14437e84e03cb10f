//! Who may look at the pages of a server on this machine.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::Url;
use serde_json::json;

use crate::cli::args::LinkArgs;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::table::table;
use crate::report::plural;
use crate::web::{Invited, LINK, Visitors};

/// How long a server may take to let in a connection.
const PATIENCE: Duration = Duration::from_secs(1);

/// Makes a link for somebody, to the server that began last.
pub(super) fn link(context: &Context, args: &LinkArgs) -> Result<u8, Failure> {
    let (visitors, now) = (Visitors::of(&context.state()?), Timestamp::now());
    let known = visitors.address().map_err(|error| unwritable(context, &visitors, &error))?;
    let Some(address) = known else {
        let serve = context.output.command("serve");
        return Err(Failure::wrong(format!("no server ever began on this state folder; begin one: {serve}")));
    };
    let link = link_at(&visitors, &address, (&args.name, args.decide), now);
    let url = link.map_err(|error| unwritable(context, &visitors, &error))?;
    if is_away(&address) {
        context.output.note(&format!("nobody listens at {address} now; the link is good once the server is there"));
    }
    if context.output.json {
        context.output.object(&json!({ "url": url, "for": args.name, "decides": args.decide, "exit": exit::FINE }));
    } else {
        let may = if args.decide { "look and decide" } else { "look" };
        let hours = LINK.as_hours();
        context.output.result(&format!("{url}\n  lets {} {may}; good once, for {hours} hours\n", args.name));
    }
    Ok(exit::FINE)
}

/// A link to the pages at an address.
pub(super) fn link_at(
    visitors: &Visitors,
    address: &str,
    (name, decides): (&str, bool),
    now: Timestamp,
) -> io::Result<String> {
    Ok(format!("{address}/enter/{}", visitors.invite(name, decides, now)?))
}

/// Shows who may look.
pub(super) fn list(context: &Context) -> Result<u8, Failure> {
    let visitors = Visitors::of(&context.state()?);
    let all = visitors.list(Timestamp::now()).map_err(|error| unwritable(context, &visitors, &error))?;
    if context.output.json {
        let objects: Vec<_> = all.iter().map(object).collect();
        context.output.object(&objects);
        return Ok(exit::FINE);
    }
    let next = context.output.command("serve link --for NAME");
    let shown = match all.is_empty() {
        true => "nobody may look at the pages\n".to_owned(),
        false => table(["name", "may", "links", "sessions", "until"], all.iter().map(row)),
    };
    context.output.result(&format!("{shown}next: {next}\n"));
    Ok(exit::FINE)
}

fn object(Invited { name, decides, links, sessions, until }: &Invited) -> serde_json::Value {
    json!({ "name": name, "decides": decides, "links": links, "sessions": sessions, "until": until.to_string() })
}

fn row(Invited { name, decides, links, sessions, until }: &Invited) -> [String; 5] {
    let may = if *decides { "decide" } else { "look" };
    [name.clone(), may.to_owned(), links.to_string(), sessions.to_string(), format!("{until:.0}")]
}

/// Shows somebody out.
pub(super) fn revoke(context: &Context, name: &str) -> Result<u8, Failure> {
    let visitors = Visitors::of(&context.state()?);
    let revoked = visitors.revoke(name, Timestamp::now());
    let revoked = revoked.map_err(|error| unwritable(context, &visitors, &error))?;
    if context.output.json {
        context.output.object(&json!({ "name": name, "revoked": revoked, "exit": exit::FINE }));
    } else if revoked == 0 {
        context.output.done(&format!("{name} had no link and no session: nothing changed\n"), exit::FINE);
    } else {
        let ended = plural(revoked as u64, "link or session").replace("link or sessions", "links and sessions");
        context.output.done(&format!("{name} is out: {ended} over\n"), exit::FINE);
    }
    Ok(exit::FINE)
}

/// Whether nobody listens there, as far as that can be told from here.
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
            format!("delete the file, which signs everybody out, and create new sign-in links with `{link}`")
        }
        _ => {
            "check that the file and its folder are readable and writable, then start `campaign serve` again".to_owned()
        }
    };
    format!("cannot read or write the dashboard sign-ins in `{file}`: {error}; {remedy}")
}
