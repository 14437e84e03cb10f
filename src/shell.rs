//! Shell integration: usage errors, the log, completion scripts, manual pages (`campaign man`), and JSON Schemas for
//! editors.

use std::ffi::OsString;
use std::path::Path;
use std::{fs, io};

use clap::{Arg, ColorChoice, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use serde_json::{Value, json};
use tracing_subscriber::filter::{LevelFilter, Targets};

use super::args::{CompletionNames, GlobalOptions, SchemaOf, build_command};
use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use super::output::{error_has_colours, report_write_error, with_json_version};
use super::progress::LogWriter;
use super::text::{StyledLine, plain, strong};
use campaign_engine::report::{RunList, format_count};
use campaign_runs::list_campaign_files;

/// Prints a usage error or the requested help, and returns the exit code.
pub(super) fn print_usage_error(error: &clap::Error, json: bool) -> u8 {
    if !error.use_stderr() {
        return if report_write_error(error.print()) { exit::STORAGE } else { exit::SUCCESS };
    }
    if json {
        let object = usage_error_json(&error.render().to_string());
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout().lock(), "{}", with_json_version(&object.to_string()));
    } else {
        let _ = error.print();
    }
    exit::INVALID
}

/// A usage error as JSON: its message, with the tip as help. Only the text output contains the usage.
fn usage_error_json(rendered: &str) -> Value {
    let to_single_line = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut parts = rendered.trim().split("\n\n");
    let message = to_single_line(parts.next().unwrap_or_default());
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    let mut object = json!({ "exit": exit::INVALID, "error": message });
    if let Some(tip) = parts.find_map(|part| part.trim_start().strip_prefix("tip: ").map(to_single_line)) {
        object["help"] = tip.into();
    }
    object
}

/// Applies the `--color` option among the arguments to help and usage errors.
pub(super) fn with_chosen_colors(command: Command, arguments: &[OsString]) -> Command {
    with_color(command, find_color_option(arguments))
}

/// Sets the color choice of a command and all its subcommands. A command that is already built does not pass the choice
/// on.
fn with_color(command: Command, choice: ColorChoice) -> Command {
    command.color(choice).mut_subcommands(|inner| with_color(inner, choice))
}

/// Finds the value of `--color` before the arguments are parsed.
fn find_color_option(arguments: &[OsString]) -> ColorChoice {
    let value_at = |index: usize| match arguments[index].to_str()? {
        "--color" => arguments.get(index + 1)?.to_str(),
        argument => argument.strip_prefix("--color="),
    };
    match (0..arguments.len()).find_map(value_at) {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

/// Builds the log filter from the part of `RUST_LOG` about this program, or else from `-v` and `--quiet`.
///
/// Events of libraries are excluded, because libraries might log the data that they send.
fn log_filter(global: &GlobalOptions, variable: Option<&str>) -> Targets {
    const OWN_TARGET: &str = "campaign";
    let requested: Targets = variable.and_then(|directives| directives.parse().ok()).unwrap_or_default();
    let is_own = |target: &str| target == OWN_TARGET || target.starts_with("campaign_");
    let default = requested.default_level().map(|level| (OWN_TARGET.to_owned(), level));
    let own_targets =
        requested.iter().filter(|(target, _)| is_own(target)).map(|(target, level)| (target.to_owned(), level));
    let own_targets: Vec<(String, LevelFilter)> = default.into_iter().chain(own_targets).collect();
    if !own_targets.is_empty() {
        return Targets::new().with_targets(own_targets);
    }
    Targets::new().with_target(OWN_TARGET, log_level(global))
}

fn log_level(global: &GlobalOptions) -> LevelFilter {
    match global.verbose {
        0 if global.quiet => LevelFilter::ERROR,
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

/// Starts the log on standard error. Messages that the operator must see do not depend on the log level.
pub(super) fn start_log(global: &GlobalOptions) {
    // An empty variable counts as not set.
    let variable = std::env::var("RUST_LOG").ok().filter(|directives| !directives.trim().is_empty());
    let filter = log_filter(global, variable.as_deref());
    let is_detailed = global.verbose > 0 || variable.is_some();
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    let format = tracing_subscriber::fmt::layer().with_writer(|| LogWriter).with_ansi(error_has_colours(global.color));
    let registry = tracing_subscriber::registry().with(filter);
    let _ = if !is_detailed {
        registry.with(format.without_time().with_target(false)).try_init()
    } else {
        registry.with(format).try_init()
    };
}

/// Prints the JSON Schema of a file format.
pub(super) fn print_schema(context: &Context, kind: SchemaOf) -> u8 {
    let schema = match kind {
        SchemaOf::Campaign => campaign_manifest::campaign_schema(),
        SchemaOf::Gateways => campaign_manifest::gateways_schema(),
        SchemaOf::Scenario => campaign_sandbox::scenario_schema(),
    };
    context.output.print_verbatim(&format!("{schema:#}\n"));
    exit::SUCCESS
}

/// Prints the completion script of a shell.
pub(super) fn print_completions(context: &Context, shell: Shell) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut build_command(), "campaign", &mut script);
    let script = String::from_utf8_lossy(&script);
    context.output.print_verbatim(&match shell {
        Shell::Bash => format!("{script}\n{}", bash_script()),
        Shell::Fish => format!("{script}{}", fish_script()),
        Shell::Zsh => add_names_to_zsh_script(&script),
        _ => script.into_owned(),
    });
    exit::SUCCESS
}

/// Prints names for completion, one on each line. Unreadable sources are omitted.
pub(super) async fn print_names(context: &Context, names: CompletionNames) -> Result<u8, CommandFailure> {
    let completions = match names {
        CompletionNames::Gateways => context
            .profiles()
            .load(None)
            .map_or_else(|_| Vec::new(), |gateways| gateways.profile_names().map(str::to_owned).collect()),
        CompletionNames::Campaigns => find_campaign_files(),
        CompletionNames::Runs => list_run_names(context).await.unwrap_or_default(),
    };
    context.output.print_unwrapped(&completions.into_iter().map(|name| name + "\n").collect::<String>());
    Ok(exit::SUCCESS)
}

/// Finds the campaign files in the current folder.
fn find_campaign_files() -> Vec<String> {
    let files = list_campaign_files(Path::new(".")).unwrap_or_default();
    files.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
}

/// Lists the names of the runs and of their campaigns.
async fn list_run_names(context: &Context) -> Result<Vec<String>, CommandFailure> {
    let Some(ledger) = context.open_existing_ledger().await? else { return Ok(Vec::new()) };
    let listed = RunList::load(ledger.as_ref()).await?;
    let names = listed.views.iter().flat_map(|view| [view.run.campaign.clone(), view.run.name()]);
    Ok(names.collect::<std::collections::BTreeSet<_>>().into_iter().collect())
}

/// Returns the kind of names that completion offers for an argument, if any.
fn name_kind(argument: &Arg) -> Option<&'static str> {
    match argument.get_id().as_str() {
        "run" => Some("runs"),
        "gateway" | "hooked" | "trusted" => Some("gateways"),
        "campaign" | "campaigns" => Some("campaigns"),
        _ => None,
    }
}

/// The paths of the commands whose first argument takes a name of `kind`, such as `runs`.
fn commands_with(kind: &str) -> Vec<String> {
    fn collect_paths(command: &Command, path: &str, kind: &str, paths: &mut Vec<String>) {
        for sub in command.get_subcommands() {
            let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
            if sub.get_positionals().next().and_then(name_kind) == Some(kind) {
                paths.push(path.clone());
            }
            collect_paths(sub, &path, kind, paths);
        }
    }
    let mut paths = Vec::new();
    collect_paths(&build_command(), "", kind, &mut paths);
    paths
}

/// The kinds of names that completion scripts offer.
const KINDS: [&str; 3] = ["runs", "gateways", "campaigns"];

fn bash_script() -> String {
    let cases: String = KINDS
        .iter()
        .map(|kind| {
            let patterns: Vec<String> = commands_with(kind).iter().map(|path| format!("\"{path} \"*")).collect();
            format!("            {}) names={kind} ;;\n", patterns.join("|"))
        })
        .collect();
    format!(
        r#"_campaign_named() {{
    local names="" cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" IFS=$' \t\n'
    case "$prev" in
        --gateway) names=gateways ;;
        --for) names=campaigns ;;
    esac
    if [[ -z $names && $cur != -* && $prev != -* ]]; then
        case "${{COMP_WORDS[*]:1:COMP_CWORD-1}} " in
{cases}        esac
    fi
    if [[ -n $names ]]; then
        IFS=$'\n'
        COMPREPLY=( $(compgen -W "$("$1" completions --names "$names" 2>/dev/null)" -- "$cur") )
        [[ ${{#COMPREPLY[@]}} -gt 0 ]] && return 0
    fi
    _campaign "$@"
}}
complete -F _campaign_named -o bashdefault -o default campaign
"#
    )
}

fn fish_script() -> String {
    let mut lines = String::new();
    for kind in KINDS {
        for path in commands_with(kind) {
            let conditions: Vec<String> =
                path.split(' ').map(|word| format!("__fish_seen_subcommand_from {word}")).collect();
            lines += &format!(
                "complete -c campaign -n \"{}\" -a \"(campaign completions --names {kind} 2>/dev/null)\"\n",
                conditions.join("; and ")
            );
        }
    }
    lines + "complete -c campaign -l gateway -r -f -a \"(campaign completions --names gateways 2>/dev/null)\"\n"
}

/// Adds the completion of names to the zsh script, where the text after a line's last colon sets the completion of an
/// argument.
fn add_names_to_zsh_script(script: &str) -> String {
    let mut text = String::new();
    for line in script.lines() {
        let kind = match line {
            _ if line.starts_with("':run -- ") || line.starts_with("'::run -- ") => Some("runs"),
            _ if line.starts_with("'--gateway=")
                || line.starts_with("':hooked -- ")
                || line.starts_with("':trusted -- ") =>
            {
                Some("gateways")
            }
            _ => None,
        };
        let line_with_names =
            kind.and_then(|kind| Some(format!("{}:_campaign_{kind}' \\\n", line.strip_suffix(":_default' \\")?)));
        text += &line_with_names.unwrap_or_else(|| format!("{line}\n"));
    }
    let functions = ["runs", "gateways"].map(|kind| {
        format!(
            "(( $+functions[_campaign_{kind}] )) ||\n_campaign_{kind}() {{\n    \
             compadd -- ${{(f)\"$(campaign completions --names {kind} 2>/dev/null)\"}}\n}}\n\n"
        )
    });
    // The functions must precede the line that calls or registers the script.
    match text.rfind("if [ \"$funcstack[1]\"") {
        Some(end) => format!("{}{}{}", &text[..end], functions.concat(), &text[end..]),
        None => text,
    }
}

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
pub(super) fn write_manual_pages(context: &Context, folder: &Path) -> Result<u8, CommandFailure> {
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
    let subpages = visible_commands(command).flat_map(render_pages);
    std::iter::once((format!("{name}.1"), page)).chain(subpages).collect()
}

/// The name of the manual page, such as `campaign-gateway-add`.
fn page_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn visible_commands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set())
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
    let subcommands: Vec<&Command> = visible_commands(command).collect();
    if !subcommands.is_empty() {
        roff.control("SH", ["COMMANDS"]);
        for sub in &subcommands {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            add_entry(&mut roff, &format!("{}(1)", page_name(sub)), &about);
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

    #[test]
    fn every_argument_that_takes_a_name_has_completions() {
        assert_eq!(
            commands_with("runs"),
            ["stop", "status", "results", "report", "replies", "outcome", "reconcile", "resolve", "retry", "show"]
        );
        assert_eq!(
            commands_with("campaigns"),
            ["check", "preview", "test", "run", "plan", "schedule add", "schedule next", "serve"]
        );
        assert_eq!(commands_with("gateways"), ["gateway hook", "gateway trust"]);
        let mut script = Vec::new();
        clap_complete::generate(Shell::Zsh, &mut build_command(), "campaign", &mut script);
        let script = add_names_to_zsh_script(&String::from_utf8(script).unwrap());
        assert_eq!(script.matches(":_campaign_runs'").count(), 10, "{script}");
        assert!(script.matches(":_campaign_gateways'").count() > 10, "{script}");
    }

    fn render_all_pages() -> Vec<(String, String)> {
        let pages = render_pages(&build_command()).into_iter();
        pages.map(|(name, page)| (name, String::from_utf8(page).expect("UTF-8"))).collect()
    }

    fn find_page<'a>(pages: &'a [(String, String)], name: &str) -> &'a str {
        let name_and_page = pages.iter().find(|(page, _)| page == name);
        &name_and_page.unwrap_or_else(|| panic!("no page {name}")).1
    }

    #[test]
    fn every_command_has_a_man_page_with_its_examples() {
        let pages = render_all_pages();
        let mut names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), pages.len(), "two commands share a page");
        for (name, page) in &pages {
            assert!(page.contains(".SH EXAMPLES\n.nf\ncampaign "), "{name}: {page}");
            assert!(!page.contains('\u{1b}') && !page.contains("\nEXTRA"), "{name}: {page}");
        }
        assert!(find_page(&pages, "campaign-gateway-add.1").contains("\\-\\-base\\-url"));
        assert!(find_page(&pages, "campaign-run.1").contains(".SH \"SEE ALSO\"\n\\fBcampaign\\fR(1)\n"));
        assert!(!pages.iter().any(|(name, _)| name.ends_with("-help.1")));
    }

    #[test]
    fn program_man_page_lists_exit_codes_and_files() {
        let pages = render_all_pages();
        let program = find_page(&pages, "campaign.1");
        for (code, _) in EXIT_STATUS {
            assert!(program.contains(&format!("\\fB{code}\\fR\n")), "{code}: {program}");
        }
        assert!(program.contains("/var/lib/campaign"), "{program}");
    }
}
