//! `campaign completions`: what a shell offers while a command is typed.
//!
//! clap_complete writes what never changes: commands, options, words, files. Its engine for the rest is not stable yet,
//! so a few lines behind its script ask this program for the names of runs, gateways and campaigns.

use std::path::Path;

use clap::{Arg, Command};
use clap_complete::Shell;

use super::args::{CompletionNames, build_command};
use super::context::Context;
use super::exit;
use super::failure::CommandFailure;
use crate::report::RunList;
use crate::runs::list_campaign_files;

/// Prints the script for a shell.
pub(super) fn print_completions(context: &Context, shell: Shell) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut build_command(), "campaign", &mut script);
    let script = String::from_utf8_lossy(&script);
    context.output.print_verbatim(&match shell {
        Shell::Bash => format!("{script}\n{}", bash_script()),
        Shell::Fish => format!("{script}{}", fish_script()),
        Shell::Zsh => complete_zsh_script(&script),
        _ => script.into_owned(),
    });
    exit::SUCCESS
}

/// Prints names, a line each; what cannot be read has none.
pub(super) async fn print_names(context: &Context, names: CompletionNames) -> Result<u8, CommandFailure> {
    let found = match names {
        CompletionNames::Gateways => context
            .profiles()
            .load(None)
            .map_or_else(|_| Vec::new(), |found| found.profile_names().map(str::to_owned).collect()),
        CompletionNames::Campaigns => find_campaign_files(),
        CompletionNames::Runs => list_run_names(context).await.unwrap_or_default(),
    };
    context.output.print_unwrapped(&found.into_iter().map(|name| name + "\n").collect::<String>());
    Ok(exit::SUCCESS)
}

/// The campaign files of this folder.
fn find_campaign_files() -> Vec<String> {
    let files = list_campaign_files(Path::new(".")).unwrap_or_default();
    files.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
}

/// The runs, and the campaigns that they are of.
async fn list_run_names(context: &Context) -> Result<Vec<String>, CommandFailure> {
    let Some(ledger) = context.open_existing_ledger().await? else { return Ok(Vec::new()) };
    let listed = RunList::load(ledger.as_ref()).await?;
    let names = listed.views.iter().flat_map(|view| [view.run.campaign.clone(), view.run.name()]);
    Ok(names.collect::<std::collections::BTreeSet<_>>().into_iter().collect())
}

/// What an argument takes that has a name of its own.
fn name_kind(argument: &Arg) -> Option<&'static str> {
    match argument.get_id().as_str() {
        "run" => Some("runs"),
        "gateway" | "hooked" | "trusted" => Some("gateways"),
        "campaign" | "campaigns" => Some("campaigns"),
        _ => None,
    }
}

/// The commands whose first argument has a name of that kind, each by its path.
fn commands_with(kind: &str) -> Vec<String> {
    fn walk(command: &Command, path: &str, kind: &str, found: &mut Vec<String>) {
        for below in command.get_subcommands() {
            let path = format!("{path} {}", below.get_name()).trim_start().to_owned();
            if below.get_positionals().next().and_then(name_kind) == Some(kind) {
                found.push(path.clone());
            }
            walk(below, &path, kind, found);
        }
    }
    let mut found = Vec::new();
    walk(&build_command(), "", kind, &mut found);
    found
}

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
            let seen: Vec<String> = path.split(' ').map(|word| format!("__fish_seen_subcommand_from {word}")).collect();
            lines += &format!(
                "complete -c campaign -n \"{}\" -a \"(campaign completions --names {kind} 2>/dev/null)\"\n",
                seen.join("; and ")
            );
        }
    }
    lines + "complete -c campaign -l gateway -r -f -a \"(campaign completions --names gateways 2>/dev/null)\"\n"
}

/// zsh's script names what completes an argument behind its last colon.
fn complete_zsh_script(script: &str) -> String {
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
        let replaced =
            kind.and_then(|kind| Some(format!("{}:_campaign_{kind}' \\\n", line.strip_suffix(":_default' \\")?)));
        text += &replaced.unwrap_or_else(|| format!("{line}\n"));
    }
    let functions = ["runs", "gateways"].map(|kind| {
        format!(
            "(( $+functions[_campaign_{kind}] )) ||\n_campaign_{kind}() {{\n    \
             compadd -- ${{(f)\"$(campaign completions --names {kind} 2>/dev/null)\"}}\n}}\n\n"
        )
    });
    // The functions stand before the line that calls or registers the whole.
    match text.rfind("if [ \"$funcstack[1]\"") {
        Some(end) => format!("{}{}{}", &text[..end], functions.concat(), &text[end..]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_with_a_name_is_completed() {
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
        let script = complete_zsh_script(&String::from_utf8(script).unwrap());
        assert_eq!(script.matches(":_campaign_runs'").count(), 10, "{script}");
        assert!(script.matches(":_campaign_gateways'").count() > 10, "{script}");
    }
}
