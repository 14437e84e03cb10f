//! `campaign init`: a campaign file, its text and a list, ready to be rehearsed.

mod draft;
mod list;

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use serde_json::json;

use super::args::InitArgs;
use super::context::Context;
use super::exit::FINE;
use super::failure::Failure;
use crate::manifest::{is_slug, slug};
use draft::{Draft, drafts};
use list::List;

pub(super) fn init(context: &Context, args: &InitArgs) -> Result<u8, Failure> {
    let name = &args.name;
    if !is_slug(name) {
        return Err(Failure::wrong(format!(
            "`{name}` cannot be a campaign's name: 1 to 64 of a-z, 0-9 and `-`; say `{}`",
            context.output.command(format!("init {}", slug(name)))
        )));
    }
    let list = args.from.as_deref().map(List::read).transpose()?;
    let drafts = drafts(name, list.as_ref());
    write_all(&drafts)?;
    let next = context.output.command(format!("check {name}.yaml"));
    if context.output.json {
        let files: Vec<_> = drafts.iter().map(|draft| &draft.path).collect();
        context.output.object(&json!({ "files": files, "exit": FINE, "next": next }));
        return Ok(FINE);
    }
    let width = drafts.iter().map(|draft| draft.path.len()).max().unwrap_or_default();
    let mut text = String::new();
    for Draft { path, what, .. } in &drafts {
        text += &format!("{path:width$}  {what}\n");
    }
    text += &list.map(|list| list.summary()).unwrap_or_default();
    context.output.result(&format!("{text}next: {next}\n"));
    Ok(FINE)
}

/// Writes all files or none.
fn write_all(drafts: &[Draft]) -> Result<(), Failure> {
    if let Some(draft) = drafts.iter().find(|draft| Path::new(&draft.path).symlink_metadata().is_ok()) {
        return Err(in_the_way(&draft.path));
    }
    for (index, draft) in drafts.iter().enumerate() {
        if let Err(error) = create(draft) {
            for written in &drafts[..index] {
                // The reason that is reported is the first one.
                let _ = fs::remove_file(&written.path);
            }
            return Err(match error.kind() {
                ErrorKind::AlreadyExists => in_the_way(&draft.path),
                _ => Failure::storage(format!("`{}` cannot be written: {error}; nothing was written", draft.path)),
            });
        }
    }
    Ok(())
}

fn create(draft: &Draft) -> io::Result<()> {
    let path = Path::new(&draft.path);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(draft.text.as_bytes()).inspect_err(|_| {
        // Half a file helps nobody.
        let _ = fs::remove_file(path);
    })
}

fn in_the_way(path: &str) -> Failure {
    Failure::wrong(format!("`{path}` is in the way; nothing was written: move it, or choose another name"))
}
