//! The yes of a person at the terminal, or one that was given with the command.

use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::time::Duration;

use super::failure::Failure;
use super::output::Output;
use super::run::left_out;
use crate::finding::{harmless, one_line};
use crate::gateway::BoxFuture;
use crate::manifest::Profile;
use crate::report::{counts_line, duration, preview, thousands};
use crate::runs::{self, Consent, Inputs, ListSurvey, Question, Refusal, blocking};

/// The yes that was given with the command.
pub(super) struct Given;

impl Consent for Given {
    fn can_come(&self) -> bool {
        true
    }

    fn ask<'a>(&'a self, _: Question<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async { Ok(()) })
    }
}

/// A person who types the number of recipients, if there is one at the terminal.
pub(super) struct Person {
    can_ask: bool,
}

impl Person {
    pub(super) fn at(output: &Output) -> Self {
        Self { can_ask: output.can_ask() }
    }
}

impl Consent for Person {
    fn can_come(&self) -> bool {
        self.can_ask
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        let (text, number) = match question {
            Question::Begin { inputs, profile, survey, state, number } => {
                (begin((inputs, profile), survey, state, number), number)
            }
            Question::GoOn { run, snapshot, profile, number } => {
                let (name, host) = (run.name(), profile.base_url.host());
                let (rows, counts) = (thousands(run.recipients), counts_line(&snapshot.counts));
                (
                    format!("going on with {name} · through {} at {host}\n  {rows} rows: {counts}\n", profile.name),
                    number,
                )
            }
        };
        Box::pin(async move {
            if !self.can_ask {
                return Err(Refusal::NobodyToAsk(number));
            }
            let prompt = format!("{text}type the number of recipients ({number}) to send, anything else to leave: ");
            let typed = typed(prompt).await.map_err(|_| Refusal::No)?;
            let digits: String = typed.chars().filter(|character| !character.is_whitespace()).collect();
            if digits.parse() == Ok(number) { Ok(()) } else { Err(Refusal::No) }
        })
    }
}

/// What a new run is going to do.
fn begin((inputs, profile): (&Inputs, &Profile), surveyed: &ListSurvey, state: &Path, number: u64) -> String {
    let (campaign, survey) = (&inputs.campaign, &surveyed.survey);
    let mut text = format!("{} · through {} at {}\n", campaign.brief.name, profile.name, profile.base_url.host());
    text += &format!("  list: {} ({} rows)\n", campaign.recipients.display(), thousands(survey.recipients));
    text += &format!("  {}\n", counts_line(&survey.counts()));
    for line in left_out(surveyed) {
        text += &format!("    {}\n", one_line(&line));
    }
    text += &format!("  about {} parts", thousands(survey.parts));
    if let Some(rate) = campaign.delivery.within(profile).rate.per_second() {
        text += &format!(", at least {}", duration(Duration::from_secs_f64(number as f64 / rate)));
    }
    text += &format!("\n  ledger: {}\n", state.display());
    if let Some(first) = &survey.first {
        text += "  the first message:\n";
        for line in preview(first.row, first.phone, &first.content).lines() {
            text += &format!("  {line}\n");
        }
    }
    text
}

/// Asks before a single paid operation, which `question` describes.
pub(super) async fn one_off(output: &Output, yes: bool, question: String) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !output.can_ask() {
        return Err(Failure::wrong(
            "this would ask a live gateway, and costs money; say `--yes` to agree where nobody can be asked",
        ));
    }
    match typed(format!("{question}type `yes` to go on, anything else to leave: ")).await?.trim() {
        "yes" => Ok(()),
        _ => Err(Failure::wrong("nothing was sent: `yes` was not typed")),
    }
}

/// The line that a person types at the terminal below `prompt`.
pub(super) async fn typed(prompt: String) -> Result<String, runs::Error> {
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
        typed
    })
    .await
}
