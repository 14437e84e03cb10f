//! Asking for a yes before people get messages.

use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use super::args::RunArgs;
use super::context::Context;
use super::exit::Failure;
use super::run::left_out;
use super::survey::{Inputs, Looked, blocking};
use crate::delivery::Snapshot;
use crate::finding::{harmless, one_line};
use crate::ledger::Run;
use crate::manifest::Profile;
use crate::report::{counts_line, duration, preview, thousands};

/// Asks before a new run.
pub(super) async fn begin(
    context: &Context,
    args: &RunArgs,
    (inputs, profile): (&Inputs, &Profile),
    looked: &Looked,
    number: u64,
) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    let (campaign, survey) = (&inputs.campaign, &looked.survey);
    let mut text = format!("{} · through {} at {}\n", campaign.brief.name, profile.name, profile.base_url.host());
    text += &format!("  list: {} ({} rows)\n", campaign.recipients.display(), thousands(survey.recipients));
    text += &format!("  {}\n", counts_line(&survey.counts()));
    for line in left_out(looked) {
        text += &format!("    {}\n", one_line(&line));
    }
    text += &format!("  about {} parts", thousands(survey.parts));
    if let Some(rate) = campaign.delivery.within(profile).rate.per_second() {
        text += &format!(", at least {}", duration(Duration::from_secs_f64(number as f64 / rate)));
    }
    text += &format!("\n  ledger: {}\n", context.state()?.display());
    if let Some(first) = &survey.first {
        text += "  the first message:\n";
        for line in preview(first.row, first.phone, &first.content).lines() {
            text += &format!("  {line}\n");
        }
    }
    ask(context, text, number).await
}

/// Asks before going on with a run.
pub(super) async fn resume(
    context: &Context,
    args: &RunArgs,
    profile: &Profile,
    (run, snapshot): (&Run, &Snapshot),
    number: u64,
) -> Result<(), Failure> {
    if args.yes || number == 0 {
        return Ok(());
    }
    let mut text = format!("going on with {} · through {} at {}\n", run.name(), profile.name, profile.base_url.host());
    text += &format!("  {} rows: {}\n", thousands(run.recipients), counts_line(&snapshot.counts));
    ask(context, text, number).await
}

/// Asks before a single paid operation, which `question` describes.
pub(super) async fn one_off(context: &Context, yes: bool, question: String) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !context.output.can_ask() {
        return Err(Failure::wrong(
            "this would ask a live gateway, and costs money; say `--yes` to agree where nobody can be asked",
        ));
    }
    match typed(format!("{question}type `yes` to go on, anything else to leave: ")).await?.trim() {
        "yes" => Ok(()),
        _ => Err(Failure::wrong("nothing was sent: `yes` was not typed")),
    }
}

/// Shows what will happen and has the number of recipients typed.
async fn ask(context: &Context, text: String, number: u64) -> Result<(), Failure> {
    if !context.output.can_ask() {
        return Err(Failure::wrong(format!(
            "this would send to {number} recipients through a live gateway; say `--yes` to agree where nobody can be asked"
        )));
    }
    let typed =
        typed(format!("{text}type the number of recipients ({number}) to send, anything else to leave: ")).await?;
    let digits: String = typed.chars().filter(|character| !character.is_whitespace()).collect();
    if digits.parse() == Ok(number) {
        Ok(())
    } else {
        Err(Failure::wrong("nothing was sent: the number was not typed"))
    }
}

/// The line that a person types at the terminal below `prompt`.
pub(super) async fn typed(prompt: String) -> Result<String, Failure> {
    blocking(move || {
        {
            // The lock ends before the wait: whoever interrupts it has something to say there too.
            let mut out = std::io::stderr().lock();
            // A terminal that cannot be written to cannot be read from either.
            let _ = write!(out, "{}", harmless(&prompt));
            let _ = out.flush();
        }
        let mut typed = String::new();
        let _ = std::io::stdin().lock().read_line(&mut typed);
        Ok(typed)
    })
    .await
}
