//! `campaign man`: the manual page of each command, for packages and for `man`.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use serde_json::json;

use super::args::build_command;
use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use super::text::{StyledLine, plain, strong};
use campaign_engine::report::format_count;

/// The meanings of the exit codes, in the order of `docs/exit-codes.md`.
const EXIT_STATUS: [(&str, &str); 10] = [
    ("0", "All rows were accepted, queued or skipped."),
    ("1", "A bug in `campaign`."),
    ("2", "The command line or a file is invalid. This command sent nothing."),
    ("3", "Finished, with rejected or invalid rows."),
    ("4", "Finished, with rows in doubt."),
    ("5", "Stopped before the end, or the gateway could not be reached."),
    ("6", "Another process is sending the run."),
    ("7", "The gateway rejected the API key."),
    ("74", "The ledger, the results or the output could not be written."),
    ("128+N", "Signal N stopped the command."),
];

/// The files that the manual page of the program describes.
const FILES: [(&str, &str); 4] = [
    ("~/.local/state/campaign", "Your ledger and list copies, if the machine has no system ledger."),
    ("/var/lib/campaign", "The system ledger, shared by the server and members of the campaign group."),
    ("gateways.yaml", "The gateway profiles: next to the campaign, or in a folder above it."),
    ("~/.config/campaign/gateways.yaml", "The gateway profiles for campaigns without a gateways.yaml of their own."),
];

/// Writes the manual pages of all commands to a folder.
pub(super) fn write_pages(context: &Context, folder: &Path) -> Result<u8, CommandFailure> {
    let pages = render_pages(&build_command());
    let written = fs::create_dir_all(folder)
        .and_then(|()| pages.iter().try_for_each(|(name, page)| fs::write(folder.join(name), page)));
    written.map_err(|error| {
        CommandFailure::storage_failure(format!("cannot write the manual pages to `{}`: {error}", folder.display()))
    })?;
    if context.output.json {
        let files: Vec<_> = pages.iter().map(|(name, _)| folder.join(name)).collect();
        context.output.print_object(&json!({ "files": files, "exit": exit::SUCCESS }));
    } else {
        let count = format_count(pages.len() as u64, "manual page");
        let line = StyledLine::success([strong(count), plain(format!(" in {}", folder.display()))]);
        context.output.print_done(line, exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
}

/// Renders the pages of a command and all its subcommands, with their file names.
fn render_pages(command: &Command) -> Vec<(String, Vec<u8>)> {
    let name = page_name(command);
    let mut page = Vec::new();
    render_page(command, &mut page).expect("a vector takes every byte");
    let below = visible_commands(command).flat_map(render_pages);
    std::iter::once((format!("{name}.1"), page)).chain(below).collect()
}

/// The name of the page, such as `campaign-gateway-add`.
fn page_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn visible_commands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set())
}

fn render_page(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let is_program = page_name(command) == "campaign";
    // Subcommands are described on their own pages.
    let man = Man::new(command.clone()).source(concat!("campaign ", env!("CARGO_PKG_VERSION"))).manual("campaign");
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    let mut roff = Roff::new();
    let below: Vec<&Command> = visible_commands(command).collect();
    if !below.is_empty() {
        roff.control("SH", ["COMMANDS"]);
        for below in &below {
            let about = below.get_about().map(ToString::to_string).unwrap_or_default();
            add_entry(&mut roff, &format!("{}(1)", page_name(below)), &about);
        }
    }
    add_examples(&mut roff, command);
    if is_program {
        roff.control("SH", ["EXIT STATUS"]);
        EXIT_STATUS.iter().for_each(|(code, meaning)| add_entry(&mut roff, code, meaning));
        roff.control("SH", ["FILES"]);
        FILES.iter().for_each(|(file, content)| add_entry(&mut roff, file, content));
    } else {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold("campaign"), roman("(1)")]);
    }
    roff.to_writer(page)
}

/// Adds a term and its description.
fn add_entry(roff: &mut Roff, term: &str, description: &str) {
    roff.control("TP", []);
    roff.text([bold(term)]);
    roff.text([roman(description)]);
}

/// Adds the examples of the command, line by line.
fn add_examples(roff: &mut Roff, command: &Command) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut lines = help.lines().skip_while(|line| *line != "Examples:").skip(1).peekable();
    if lines.peek().is_none() {
        return;
    }
    roff.control("SH", ["EXAMPLES"]);
    roff.control("nf", []);
    lines.take_while(|line| !line.is_empty()).for_each(|line| {
        roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    });
    roff.control("fi", []);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Vec<(String, String)> {
        let pages = render_pages(&build_command()).into_iter();
        pages.map(|(name, page)| (name, String::from_utf8(page).expect("UTF-8"))).collect()
    }

    fn page<'a>(pages: &'a [(String, String)], name: &str) -> &'a str {
        let found = pages.iter().find(|(page, _)| page == name);
        &found.unwrap_or_else(|| panic!("no page {name}")).1
    }

    #[test]
    fn every_command_has_a_page_with_its_examples() {
        let pages = pages();
        let mut names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), pages.len(), "two commands share a page");
        for (name, page) in &pages {
            assert!(page.contains(".SH EXAMPLES\n.nf\ncampaign "), "{name}: {page}");
            assert!(!page.contains('\u{1b}') && !page.contains("\nEXTRA"), "{name}: {page}");
        }
        assert!(page(&pages, "campaign-gateway-add.1").contains("\\-\\-base\\-url"));
        assert!(page(&pages, "campaign-run.1").contains(".SH \"SEE ALSO\"\n\\fBcampaign\\fR(1)\n"));
        assert!(!pages.iter().any(|(name, _)| name.ends_with("-help.1")));
    }

    #[test]
    fn program_man_page_lists_exit_codes_and_files() {
        let pages = pages();
        let program = page(&pages, "campaign.1");
        for (code, _) in EXIT_STATUS {
            assert!(program.contains(&format!("\\fB{code}\\fR\n")), "{code}: {program}");
        }
        assert!(program.contains("/var/lib/campaign"), "{program}");
    }
}
