//! Checks of a campaign before it is sent: `check`, the tests in its file, dry runs, and inquiries to the gateway.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::list::survey_list_for_run;
use super::{
    AccountView, Adapters, Error, GatewayAccount, Inputs, ListSurvey, ProtectedFiles, RunEvent, RunObserver,
    find_unfamiliar_ledger_warning, refuse_start, run_blocking,
};
use campaign_core::finding::{Finding, rules};
use campaign_engine::check::online::{self, AccountAnswer, Cost, check_account, find_signatures};
use campaign_engine::check::{
    CountryCount, MadeUpError, MadeUpMessage, MadeUpRecipient, RunStart, TestResult, TestedCampaign,
    check_abroad_limit, check_includes, check_invalid_rows, check_no_messages, check_promised_receipts,
    check_recipients_limit, check_replicas, check_timing, collect_notes, list_format_note, run_each_test,
    run_given_test,
};
use campaign_engine::report::{ListSource, Listing, ResultsFormat, RowSelection, write_results_file};
use campaign_gateway::{AskBalance, AskSenders, Balance, FailureCause};
use campaign_ledger::{Ledger, ListReader};
use campaign_manifest::{CampaignTest, Profile, SecretSource, TestSubject};

/// The result of a check.
#[derive(Debug)]
pub struct CheckedCampaign {
    /// The errors, warnings and notes, including the findings of the tests.
    pub findings: Vec<Finding>,
    /// The survey of the recipients.
    pub list: ListSurvey,
    /// The cost of the messages, if the profile has prices.
    pub cost: Option<Cost>,
    /// The currency of the prices.
    pub currency: Option<String>,
    /// The recipients outside the profile's `home`, by country; empty if the campaign sets `countries`.
    pub abroad: Vec<CountryCount>,
    /// The results of the tests in the campaign file.
    pub tests: Vec<TestResult>,
    /// The reason `run` would refuse to send. One of the findings says so.
    pub refused: Option<Error>,
}

/// Checks a campaign and all its recipients. Uses the ledger if one is given.
///
/// # Errors
/// If invalid inputs prevent any further checks, or the ledger cannot be read.
pub async fn check_campaign(
    inputs: &Arc<Inputs>,
    ledger: Option<&dyn Ledger>,
    files: ProtectedFiles<'_>,
    observer: &RunObserver,
    now: Timestamp,
) -> Result<CheckedCampaign, Error> {
    let start = RunStart::for_campaign(&inputs.campaign, now);
    let resumed = match ledger {
        Some(ledger) => refuse_start(ledger, inputs).await,
        None => Ok(None),
    };
    let open_run = resumed.as_ref().ok().and_then(Option::as_ref);
    let (list, mut findings) = match survey_list_for_run(inputs, ledger, open_run, observer).await {
        Ok(list) => {
            let findings = check_inputs(inputs, Some(&list), start);
            (Some(list), findings)
        }
        // Problems in the list or the texts do not hide findings that do not depend on them.
        Err(Error::Findings(survey_findings)) => {
            let mut findings = check_inputs(inputs, None, start);
            findings.retain(|finding| !survey_findings.contains(finding));
            findings.extend(survey_findings);
            (None, findings)
        }
        Err(error) => return Err(error),
    };
    let tests = run_campaign_tests(inputs).await?;
    for finding in tests.iter().flat_map(|test| &test.findings) {
        if !findings.contains(finding) {
            findings.push(finding.clone());
        }
    }
    findings.extend(files.check_results_target(inputs));
    let Some(list) = list else { return Err(Error::Findings(findings)) };
    if let Some(ledger) = ledger {
        findings.extend(check_ledger_for_run(inputs, ledger, now).await?);
    }
    let refusal = resumed.err();
    findings.extend(refusal.as_ref().map(|refusal| Finding::new(&rules::RUN_REFUSED, refusal.to_string())));
    let cost = list.compute_cost(inputs, &list.survey.planned_rows());
    let currency = inputs.destination.profile().and_then(|profile| profile.currency.clone());
    let home = inputs.campaign.brief.effective_home(inputs.destination.profile());
    let planned = list.survey.planned_rows();
    let abroad = home.map(|home| list.survey.countries.count_abroad(home, &planned)).unwrap_or_default();
    Ok(CheckedCampaign { findings, list, cost, currency, abroad, tests, refused: refusal })
}

/// Warns before a live run about unconfirmed replicas, and about a ledger that this machine does not know.
pub(super) async fn check_ledger_for_run(
    inputs: &Inputs,
    ledger: &dyn Ledger,
    now: Timestamp,
) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    if inputs.destination.is_live() {
        findings.extend(check_replicas(ledger.load_risks().await?.unconfirmed_replicas));
    }
    if inputs.destination.remote_profile().is_some() {
        findings.extend(find_unfamiliar_ledger_warning(ledger, now).await?);
    }
    Ok(findings)
}

/// Findings about a campaign and, if `list` is given, about its list. The findings cover warnings, an unreadable API
/// key, invalid rows, and whether a run with this start can send messages.
pub(super) fn check_inputs(inputs: &Inputs, list: Option<&ListSurvey>, start: RunStart) -> Vec<Finding> {
    let profile = inputs.destination.profile();
    let mut findings = inputs.warnings.clone();
    let key_problem = profile.and_then(|profile| find_api_key_problem(&profile.api_key));
    findings.extend(key_problem.map(|problem| Finding::new(&rules::API_KEY, problem)));
    findings.extend(profile.map(|profile| check_promised_receipts(&inputs.campaign, profile)).unwrap_or_default());
    match list {
        Some(list) => {
            findings.extend(check_invalid_rows(&list.survey));
            findings.extend(check_no_messages(&list.survey, &inputs.campaign.brief));
            findings.extend(list.format.as_deref().map(|format| list_format_note(&inputs.campaign.recipients, format)));
            findings.extend(list.warnings(inputs, start));
            // A resumed run has passed these limits, perhaps with options that raise them.
            if let Some(profile) = profile.filter(|_| list.began_at.is_none()) {
                findings.extend(check_recipients_limit(profile, list.survey.count_planned()));
                findings.extend(check_abroad_limit(profile, list.count_abroad(profile)));
            }
            findings.extend(check_includes(&list.includes, &inputs.campaign));
        }
        None => findings.extend(check_timing(&inputs.campaign, profile, None, start)),
    }
    let due = match start {
        RunStart::Scheduled(now) => inputs.campaign.next_due_after(now),
        RunStart::At(_) => None,
    };
    findings.extend(collect_notes(&inputs.campaign, profile, list.map(|list| &list.survey), due));
    findings
}

/// Returns why the API key cannot be read; `None` if it can be read. The message never contains any part of the API
/// key.
fn find_api_key_problem(source: &SecretSource) -> Option<String> {
    source.read_secret("the API key (`api_key`)", &|name| std::env::var(name).ok()).err()
}

/// The outcome of a dry run, which writes results but sends nothing.
#[derive(Debug)]
pub struct DryRun {
    /// The survey of the list.
    pub survey: ListSurvey,
    /// The path of the results.
    pub results: PathBuf,
}

/// Checks everything and writes the results of a run that sends nothing. Changes that `run` refuses are refused here,
/// unless `accept_changes` is set.
///
/// # Errors
/// If the inputs are wrong, or the results cannot be written.
pub async fn dry_run(
    inputs: &Arc<Inputs>,
    ledger: Option<&dyn Ledger>,
    files: ProtectedFiles<'_>,
    accept_changes: bool,
    observer: &RunObserver,
) -> Result<DryRun, Error> {
    let resumed = match ledger {
        // Inputs that `run` refuses begin a new run. Other errors occur again during the survey.
        Some(ledger) if accept_changes => refuse_start(ledger, inputs).await.unwrap_or_default(),
        Some(ledger) => refuse_start(ledger, inputs).await?,
        None => None,
    };
    let survey = survey_list_for_run(inputs, ledger, resumed.as_ref(), observer).await?;
    refuse_failed_tests(inputs, observer).await?;
    let campaign = &inputs.campaign;
    let target = files.results_target(campaign, campaign.dry_results_file());
    target.resolve_path().map_err(Error::ResultsPlace)?;
    let open = || {
        let opened = inputs.open_list().map_err(|_| io::Error::other("the file no longer exists"));
        opened.map(|list| Box::new(list) as ListReader)
    };
    let listing = Listing {
        recipients: ListSource::Outside { path: inputs.list.place(), open: &open },
        recipients_sha256: &survey.sha256,
        brief: &campaign.brief,
        run: None,
        kind: campaign.brief.content.kind,
        left_out: &survey.survey.left_out,
        selection: RowSelection::default(),
        only: None,
        records: None,
        earlier: None,
    };
    write_results_file(&target, ResultsFormat::Csv, vec![listing]).await?;
    Ok(DryRun { survey, results: target.path().to_owned() })
}

/// The time limit for the gateway's answer. The time is short, because the inquiry is optional.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The gateway's answer about a campaign.
#[derive(Debug)]
pub struct OnlineAnswer {
    /// The problems.
    pub findings: Vec<Finding>,
    /// The balance of the account, if it is known.
    pub balance: Option<Balance>,
    /// The cost of the messages.
    pub cost: Cost,
    is_key_refused: bool,
}

/// Asks the gateway for the balance and the senders of the account, and checks a campaign whose messages have this cost
/// against the answer.
///
/// # Errors
/// If the key or the ledger cannot be read, the host has changed, or the client cannot be created. A failed inquiry and
/// problems in the answer are findings, not errors.
pub async fn ask_online(
    adapters: &Adapters,
    inputs: &Inputs,
    profile: &Profile,
    cost: Cost,
) -> Result<OnlineAnswer, Error> {
    let account = GatewayAccount::open(adapters, profile, ANSWER_TIMEOUT).await?;
    let answer: AccountAnswer = account.ask_both(&AskBalance, &AskSenders).await?;
    let campaign = &inputs.campaign;
    let signatures = find_signatures(&campaign.brief, &campaign.places, &inputs.today);
    let name_view = |view| (adapters.name_view)(view, &profile.name);
    let (balance, senders) = (name_view(AccountView::Balance), name_view(AccountView::Senders));
    let (verified, key) = (&profile.sender_verified, profile.api_key.to_string());
    let terms = online::AccountTerms { verified, key: &key, balance: &balance, senders: &senders };
    Ok(OnlineAnswer {
        findings: check_account(&answer, &signatures, terms, &cost),
        is_key_refused: matches!(&answer, Err(failure) if failure.cause == FailureCause::KeyRefused),
        balance: answer.ok().and_then(|(balance, _)| balance.ok()),
        cost,
    })
}

/// Asks the gateway about a campaign and refuses to send if there are errors. Returns the balance, which is reported
/// unless a prompt shows it.
pub(super) async fn check_online(
    adapters: &Adapters,
    inputs: &Inputs,
    profile: &Profile,
    cost: Cost,
    is_balance_shown: bool,
) -> Result<Option<Balance>, Error> {
    let answer = ask_online(adapters, inputs, profile, cost).await?;
    let balance = answer.balance.clone();
    let is_allowed = !answer.findings.iter().any(Finding::is_error);
    if let Some(balance) = balance.clone().filter(|_| !is_balance_shown || !is_allowed) {
        (adapters.observer)(RunEvent::Money { balance, cost: answer.cost.clone() });
    }
    (adapters.observer)(RunEvent::Warnings(answer.into_warnings()?));
    Ok(balance)
}

impl OnlineAnswer {
    /// Returns the warnings, if there are no errors. Errors among the findings become an error that refuses the run.
    fn into_warnings(self) -> Result<Vec<Finding>, Error> {
        match self.findings.iter().any(Finding::is_error) {
            false => Ok(self.findings),
            true if self.is_key_refused => Err(Error::KeyRefused(self.findings)),
            true => Err(Error::Findings(self.findings)),
        }
    }
}

/// Runs the tests of a campaign, in the order of the file.
///
/// # Errors
/// If a test panicked, which is a bug.
pub async fn run_campaign_tests(inputs: &Arc<Inputs>) -> Result<Vec<TestResult>, Error> {
    if inputs.campaign.tests.is_empty() {
        return Ok(Vec::new());
    }
    let inputs = Arc::clone(inputs);
    run_blocking(move || inputs.run_tests()).await
}

/// Runs the tests and refuses to send if one fails. Findings that are not errors are reported.
pub(super) async fn refuse_failed_tests(inputs: &Arc<Inputs>, observer: &RunObserver) -> Result<(), Error> {
    let results = run_campaign_tests(inputs).await?;
    let findings: Vec<Finding> = results.into_iter().flat_map(|test| test.findings).collect();
    if findings.iter().any(Finding::is_error) {
        return Err(Error::Findings(findings));
    }
    if !findings.is_empty() {
        observer(RunEvent::Warnings(findings));
    }
    Ok(())
}

impl Inputs {
    pub(super) fn run_tests(&self) -> Vec<TestResult> {
        let header = self.read_header();
        let (campaign, profile) = (&self.campaign, self.destination.profile());
        let tested = TestedCampaign { campaign, profile, header: header.as_ref() };
        campaign.tests.iter().map(|test| self.run_test(&tested, test)).collect()
    }

    fn run_test(&self, tested: &TestedCampaign<'_>, test: &CampaignTest) -> TestResult {
        match &test.subject {
            TestSubject::Given(cells) => run_given_test(tested, test, cells, &mut |name| self.load_text(name)),
            TestSubject::Each(_) if tested.header.is_none() => tested.result_without_list(test),
            TestSubject::Each(count) => match self.compile_for_day(&tested.today(test)) {
                Ok(mut compiled) => run_each_test(tested, test, *count, &mut compiled),
                Err(findings) => tested.result_with_problems(test, findings),
            },
        }
    }
}

/// The messages of a made-up recipient whose cells are given by column: one message, or one for each variant.
///
/// # Errors
/// If the texts or the cells are wrong.
pub fn compose_made_up_messages(inputs: &Inputs, cells: &[(String, String)]) -> Result<Vec<MadeUpMessage>, Error> {
    let header = inputs.read_header();
    let load = &mut |name: &str| inputs.load_text(name);
    let recipient = MadeUpRecipient::compile(&inputs.campaign, header.as_ref(), cells, &inputs.today, load);
    let recipient = recipient.map_err(|error| {
        Error::Findings(match error {
            MadeUpError::Unknown { message, help, .. } => {
                vec![Finding::new(&rules::UNKNOWN_COLUMN, message).help(help)]
            }
            MadeUpError::Texts(findings) => findings,
        })
    })?;
    let countries = inputs.campaign.brief.allowed_countries(inputs.destination.profile());
    recipient.compose_messages(countries.as_ref()).map_err(Error::Findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_engine::check::rules::{KEY_REFUSED, ONLINE_UNKNOWN, SENDER_UNKNOWN};

    #[test]
    fn rejected_key_is_a_separate_error_and_warnings_pass() {
        let cost = || Cost::Unknown(Vec::new());
        let answer = |findings, is_key_refused| OnlineAnswer { findings, balance: None, cost: cost(), is_key_refused };
        let result = answer(vec![Finding::new(&KEY_REFUSED, "x")], true).into_warnings();
        assert!(matches!(result, Err(Error::KeyRefused(_))));
        let unknown = answer(vec![Finding::new(&SENDER_UNKNOWN, "x")], false).into_warnings();
        assert!(matches!(unknown, Err(Error::Findings(_))));
        assert_eq!(answer(vec![Finding::new(&ONLINE_UNKNOWN, "x")], false).into_warnings().unwrap().len(), 1);
    }
}
