//! Colours and line widths, chosen separately for each output stream. No meaning depends on a colour.

use crate::support::{Folder, Gateway, Process, Terminal, campaign, until};

/// Start of an escape sequence that sets a colour.
const COLOUR: &str = "\u{1b}[";

/// Creates a campaign with a finished run.
fn finished_campaign() -> Folder {
    let sale = campaign().to(3).write();
    sale.run(&[]).exits(0);
    sale
}

/// Returns the coloured terminal output of a command.
fn run_on_terminal(sale: &Folder, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = sale.command(arguments);
    command.envs(variables.iter().copied());
    let terminal = Terminal::start(command);
    until("the command ends", || terminal.coloured().contains("next: ") || terminal.coloured().contains("next:\u{1b}"));
    terminal.shows("next: ");
    let shown = terminal.coloured();
    terminal.finish().exits(0);
    shown
}

#[test]
fn terminal_output_has_colours_unless_they_are_switched_off() {
    let sale = finished_campaign();
    let coloured = run_on_terminal(&sale, &["status", "sale"], &[]);
    assert!(coloured.contains("\u{1b}[32m✓ finished\u{1b}[0m"), "{coloured:?}");
    assert!(coloured.contains("\u{1b}[36mnext:\u{1b}[0m"), "{coloured:?}");
    for (arguments, variables) in [
        (&["status", "sale"][..], &[("NO_COLOR", "1")][..]),
        (&["status", "sale", "--color", "never"], &[]),
        (&["status", "sale"], &[("CLICOLOR", "0")]),
        (&["status", "sale", "--color", "never"], &[("CLICOLOR_FORCE", "1")]),
    ] {
        let bare = run_on_terminal(&sale, arguments, variables);
        assert!(!bare.contains(COLOUR), "{arguments:?} {variables:?}: {bare:?}");
        assert!(bare.contains("✓ finished") && bare.contains("3 accepted by the gateway"), "{bare:?}");
    }
}

#[test]
fn piped_output_has_no_colours_unless_they_are_forced() {
    let sale = finished_campaign();
    let piped = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = sale.command(arguments);
        command.envs(variables.iter().copied());
        Process::start(command).finish().exits(0).stdout
    };
    let bare = piped(&["status", "sale"], &[]);
    assert!(!bare.contains(COLOUR) && bare.contains("✓ finished"), "{bare:?}");
    for coloured in [
        piped(&["status", "sale"], &[("CLICOLOR_FORCE", "1")]),
        piped(&["status", "sale", "--color", "always"], &[]),
        piped(&["status", "sale", "--color", "always"], &[("NO_COLOR", "1")]),
    ] {
        assert!(coloured.contains(COLOUR), "{coloured:?}");
    }
}

#[test]
fn colours_are_decided_separately_for_each_stream() {
    let sale = finished_campaign();
    sale.replace("sale.yaml", "channels:", "chanels:");
    let command = sale.command_after("exec > out.txt", &["check", "sale.yaml"]);
    let terminal = Terminal::start(command);
    terminal.shows("error[");
    let shown = terminal.coloured();
    terminal.finish().exits(2);
    assert!(shown.contains(COLOUR), "findings on the terminal are coloured: {shown:?}");
    let file = std::fs::read_to_string(sale.path("out.txt")).expect("the file");
    assert!(!file.contains(COLOUR) && !file.is_empty(), "{file:?}");
}

#[test]
fn log_and_help_respect_the_color_option() {
    let sale = finished_campaign();
    let logged = |options: &[&str]| sale.campaign(&[&["status", "-v"], options].concat()).exits(0).stderr;
    assert!(!logged(&["--color", "never"]).contains(COLOUR));
    let help = |options: &[&str]| sale.campaign(&[&["status", "--help"], options].concat()).exits(0).stdout;
    assert!(help(&["--color", "always"]).contains(COLOUR) && !help(&[]).contains(COLOUR));
}

#[test]
fn findings_are_wrapped_at_words() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(2).through(&gateway).write();
    sale.replace("sale.yaml", "channels:", "chanels:");
    let output = sale.campaign(&["check", "sale.yaml"]).exits(2).stderr;
    let narrow = Terminal::start_on(60, sale.command(&["check", "sale.yaml"]));
    narrow.shows("cannot be sent: 1 error");
    // On a slow machine, a spinner is shown and then its line is erased.
    let shown = narrow.shown().replace("\u{1b}[2K", "\n");
    narrow.finish().exits(2);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let missing: Vec<_> = words(&output).into_iter().filter(|word| !words(&shown).contains(word)).collect();
    assert!(missing.is_empty(), "{missing:?} in\n{shown}");
    let prose = shown.lines().filter(|line| !line.contains(" | ") && !line.contains("campaign "));
    assert!(prose.clone().all(|line| line.chars().count() <= 60), "{shown}");
}
