//! The yes of a person at the terminal, or one that was given with the command.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::output::Output;
use super::run::{left_out, variants};
use super::schedule::words::date;
use super::{policy, resources};
use crate::check::RunStart;
use crate::delivery::SingleKind;
use crate::domain::one_or;
use crate::finding::{harmless, one_line, severity_word};
use crate::gateway::BoxFuture;
use crate::ledger::State;
use crate::manifest::{Profile, Rate};
use crate::report::{cost_words, counts_line, duration, plural, preview, thousands};
use crate::runs::{
    self, Consent, Inputs, ListSurvey, PlanOptions, Proposal, ProposalKind, Refusal, TemplateChange, blocking,
};

/// Who agrees: whoever gave the command, if they said so in it, else the person at the terminal.
pub(super) fn of(output: &Output, agreed: bool) -> Arc<dyn Consent> {
    if agreed { Arc::new(GivenYes) } else { Arc::new(Person { can_ask: output.can_ask() }) }
}

/// The yes that was given with the command.
struct GivenYes;

impl Consent for GivenYes {
    fn can_come(&self) -> bool {
        true
    }

    fn ask<'a>(&'a self, _: Proposal<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async { Ok(()) })
    }
}

/// A person who types the number of recipients, if there is one at the terminal.
struct Person {
    can_ask: bool,
}

/// The line that says that a new round repeats messages.
pub(super) const AGAIN: &str = "  `--again`: recipients who already have this message get it once more\n";

/// What has to be typed for a yes.
enum Yes {
    Number(u64),
    Word(&'static str),
}

impl Yes {
    /// The line that asks for it.
    fn prompt(&self) -> String {
        match self {
            Yes::Number(number) => {
                format!("type the number of recipients ({number}) to send, anything else to leave: ")
            }
            Yes::Word("yes") => "type `yes` to go on, anything else to leave: ".to_owned(),
            Yes::Word(verb) => format!("type `{verb}` to {verb} it, anything else to leave: "),
        }
    }

    fn is(&self, typed: &str) -> bool {
        match self {
            Yes::Number(number) => {
                let digits: String = typed.chars().filter(|character| !character.is_whitespace()).collect();
                digits.parse() == Ok(*number)
            }
            Yes::Word(word) => typed.trim() == *word,
        }
    }
}

impl Consent for Person {
    fn can_come(&self) -> bool {
        self.can_ask
    }

    fn shows_proposals(&self) -> bool {
        self.can_ask
    }

    fn ask<'a>(&'a self, question: Proposal<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        let (text, yes) = words(&question);
        Box::pin(async move {
            if !self.can_ask {
                return Err(Refusal::NobodyToAsk);
            }
            let typed = typed(format!("{text}{}", yes.prompt())).await.map_err(|_| Refusal::No)?;
            if yes.is(&typed) { Ok(()) } else { Err(Refusal::No) }
        })
    }
}

/// What a person agrees to, and how.
fn words(question: &Proposal<'_>) -> (String, Yes) {
    match question {
        Proposal::Begin { inputs, profile, survey, ledger, rows, again } => {
            let text = begin((inputs, profile), survey, ledger, (rows, Some(RunStart::At(Timestamp::now()))));
            (format!("{text}{}", if *again { AGAIN } else { "" }), Yes::Number(rows.len()))
        }
        Proposal::Arm { arming, profile, ledger } => {
            let inputs = &arming.inputs;
            let (mut text, yes) = match &arming.survey {
                Some(survey) => {
                    let rows = survey.survey.planned_rows();
                    // `schedule add` shows the findings above the question.
                    (begin((inputs, profile), survey, ledger, (&rows, None)), Yes::Number(rows.len()))
                }
                None => {
                    let (name, through, host) = (&inputs.campaign.brief.name, &profile.name, profile.base_url.host());
                    let list = &inputs.campaign.recipients;
                    let text = format!("{name} · through {through} at {host}\n  list: {list}, which is to come\n");
                    (text + &format!("  ledger: {ledger}\n"), Yes::Word("yes"))
                }
            };
            text += &used(inputs, profile);
            text += "  it runs by itself, and nobody is asked again:\n";
            text += &arming.next.iter().map(|next| format!("    {}\n", date(next))).collect::<String>();
            (text, yes)
        }
        Proposal::Approve { approving, profile, standing, ledger } => {
            let (inputs, planned) = (&approving.inputs, &approving.planned);
            let now = Timestamp::now();
            let start = if standing.is_some() { RunStart::of(&inputs.campaign, now) } else { RunStart::At(now) };
            let mut text = begin((inputs, profile), &approving.survey, ledger, (&approving.rows, Some(start)));
            text += &used(inputs, profile);
            if planned.options.again {
                text += AGAIN;
            }
            if let PlanOptions { rows: Some(row), tests_to: Some(to), .. } = &planned.options {
                let people = plural(planned.messages, "recipient");
                text += &format!(
                    "  this approves test messages of row {row} to {people}, once: {}\n",
                    to.masked.join(", ")
                );
                return (text, Yes::Word("yes"));
            }
            text += &match standing {
                None => {
                    let people = plural(planned.messages, "recipient");
                    format!("  this approves one run to {people} at most, as it stands now\n")
                }
                Some(standing) => format!(
                    "  this approves all that is due by its schedule until {:.0}, each time to {} at most, with the list of \
                     that day\n",
                    standing.until,
                    plural(standing.up_to, "recipient")
                ),
            };
            (text, Yes::Word("yes"))
        }
        Proposal::GoOn { run, snapshot, profile, number, cost } => {
            let (name, host) = (run.name(), profile.base_url.host());
            let (rows, counts) = (plural(run.recipients, "row"), counts_line(&snapshot.counts));
            let through = &profile.name;
            let mut text = format!("going on with {name} · through {through} at {host}\n  {rows}: {counts}\n");
            text += &part_of(*number, snapshot.counts.get(State::Planned));
            if let Some(cost) = cost {
                text += &format!("  this {}\n", cost_words(cost, profile.currency.as_deref()));
            }
            (text, Yes::Number(*number))
        }
        Proposal::Single { operation, phones, profile, ledger } => {
            let (what, effect) = match operation {
                SingleKind::Lookup => ("a lookup of", "it costs money; the subscriber notices nothing"),
                SingleKind::CodeCall => ("a code call to", "it costs money, and that phone rings"),
                SingleKind::Message => ("a message to", "it costs money, and that person gets it"),
                SingleKind::Test => ("a test message to", "it costs money, and counts as no message of the campaign"),
            };
            let phones: Vec<String> = phones.iter().map(|phone| format!("+{phone}")).collect();
            let phones = phones.join(", ");
            let (through, host) = (&profile.name, profile.base_url.host());
            let text = format!("{what} {phones} · through {through} at {host}\n  {effect}\n  ledger: {ledger}\n");
            (text, Yes::Word("yes"))
        }
        Proposal::OutsideWindow { opens } => {
            let text = format!("{}\n  the test messages would leave now\n", policy::describe_closed_window(*opens));
            (text, Yes::Word("yes"))
        }
        Proposal::Pending { gateway, shown, ledger } => {
            let shown = harmless(shown);
            let text = format!(
                "an assistant wants this through {gateway}:\n{shown}\n  this approves it once, within an hour\n  ledger: {ledger}\n"
            );
            (text, Yes::Word("yes"))
        }
        Proposal::Template { profile, change } => {
            let (verb, through, host) = (change.verb(), &profile.name, profile.base_url.host());
            (format!("{verb} through {through} at {host}:\n{}\n", template(change)), Yes::Word(verb))
        }
    }
}

fn template(change: &TemplateChange) -> String {
    match change {
        TemplateChange::CreateSms(template) => format!("  {}\n  {}", template.name, template.text),
        TemplateChange::DeleteSms(template) => format!("  the SMS template {}", template.id),
        TemplateChange::CreateViber(template) => format!("  {}\n  {}", template.signature, template.text),
        TemplateChange::DeleteViber(template) => format!("  the Viber template {}\n  {}", template.id, template.text),
    }
}

/// The programs, addresses and sources that are agreed to.
fn used(inputs: &Inputs, profile: &Profile) -> String {
    resources::lines(&inputs.campaign.resources(Some(profile)), inputs.campaign.delivery.on_in_doubt)
}

/// The line that only some of the planned messages are sent now. `None` if all of them are.
fn part_of(number: u64, planned: u64) -> String {
    match number < planned {
        true => {
            let others = planned - number;
            let stay = one_or(others, "stays", "stay");
            format!("  this sends {} now; the other {} {stay} planned\n", plural(number, "message"), thousands(others))
        }
        false => String::new(),
    }
}

/// The preview of a new run, with the findings for a start at that time.
fn begin(
    (inputs, profile): (&Inputs, &Profile),
    surveyed: &ListSurvey,
    ledger: &str,
    (rows, start): (&RoaringBitmap, Option<RunStart>),
) -> String {
    let (campaign, survey) = (&inputs.campaign, &surveyed.survey);
    let mut text = format!("{} · through {} at {}\n", campaign.brief.name, profile.name, profile.base_url.host());
    text += &format!("  list: {} ({})\n", campaign.recipients, plural(survey.recipients, "row"));
    text += &format!("  {}\n", counts_line(&survey.counts()));
    text += &part_of(rows.len(), survey.planned());
    for line in left_out(&survey.left_out) {
        text += &format!("    {}\n", one_line(&line));
    }
    text += &variants(&campaign.brief, survey, rows).map(|line| format!("    {line}\n")).unwrap_or_default();
    for finding in start.map(|start| surveyed.warnings_of(inputs, rows, start)).unwrap_or_default() {
        text += &format!("  {}: {}\n", severity_word(finding.severity), one_line(&finding.message));
    }
    text += &format!("  about {}", plural(survey.parts_of(rows), "part"));
    if let Some(rate) = campaign.delivery.within(profile).rate.and_then(Rate::per_second) {
        let time = Duration::from_secs_f64(rows.len() as f64 / rate);
        text += &format!(", at least {}", duration(time));
        if let Some(openings) = campaign.openings(Some(profile), time, None) {
            text += &format!(" in {openings} openings of the window");
        }
    }
    if let Some(days) = campaign.per_day.as_ref().map(|per_day| per_day.days(rows.len())).filter(|days| *days > 1) {
        text += &format!(", on {days} days");
    }
    if let Some(cost) = surveyed.cost(inputs, rows) {
        text += &format!(", {}", cost_words(&cost, profile.currency.as_deref()));
    }
    text += &format!("\n  ledger: {ledger}\n");
    if let Some(first) = survey.firsts.iter().find(|first| rows.contains(first.row.get())) {
        text += "  the first message:\n";
        for line in preview(first.row, first.phone, &first.content).lines() {
            text += &format!("  {line}\n");
        }
    }
    text
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
/// Why there is no yes, and how to give one.
pub(super) fn not_confirmed(what: &ProposalKind, refusal: Refusal) -> String {
    const BEFOREHAND: &str = "say `--yes` to agree where nobody can be asked";
    match (what, refusal) {
        (ProposalKind::Run(number), Refusal::NobodyToAsk) => {
            let recipients = plural(*number, "recipient");
            format!("this would send to {recipients} through a live gateway; {BEFOREHAND}")
        }
        (ProposalKind::Run(_), Refusal::No) => "nothing was sent: the number was not typed".to_owned(),
        (ProposalKind::Arm, Refusal::NobodyToAsk) => {
            format!("from now on this would send through a live gateway by itself; {BEFOREHAND}")
        }
        (ProposalKind::Arm, Refusal::No) => "nothing is armed: nobody agreed".to_owned(),
        (ProposalKind::Approve, Refusal::NobodyToAsk) => {
            "an approval is typed at a terminal, by whoever looks at what is approved, and here is none".to_owned()
        }
        (ProposalKind::Approve, Refusal::No) => "nothing is approved: `yes` was not typed".to_owned(),
        (ProposalKind::Single, Refusal::NobodyToAsk) => {
            format!("this would ask a live gateway, and costs money; {BEFOREHAND}")
        }
        (ProposalKind::Single, Refusal::No) => "nothing was sent: `yes` was not typed".to_owned(),
        (ProposalKind::OutsideWindow(_), Refusal::No) => "cancelled; nothing was sent".to_owned(),
        (ProposalKind::OutsideWindow(opens), Refusal::NobodyToAsk) => {
            format!("nothing was sent: {}", policy::describe_closed_window(opens.as_ref()))
        }
        (ProposalKind::Template { gateway, verb }, Refusal::NobodyToAsk) => {
            format!("this would {verb} a template of the live gateway `{gateway}`; {BEFOREHAND}")
        }
        (ProposalKind::Template { verb, .. }, Refusal::No) => format!("nothing was done: `{verb}` was not typed"),
    }
}
