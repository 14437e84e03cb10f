//! Tests of approvals for live runs, with a sandbox in place of the live host, and of plans from earlier versions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::watch;

use super::*;
use crate::tests::{FixedConsent, TestWorld, expect_ended};
use crate::{
    Adapters, Error, Inputs, Launch, ProtectedFiles, RetryScope, Round, RunOutcome, RunRequest, load_occurrence,
};
use campaign_core::calendar::Occurrence;
use campaign_core::domain::Endpoint;
use campaign_engine::delivery::Interrupt;
use campaign_gateway::{AnswerRules, GatewayAddress, JsonApi, JsonApiError};
use campaign_ledger::{ApprovalFilter, HostChange, RowState, RunId};
use campaign_manifest::CampaignDay;
use campaign_sandbox::{Sandbox, SandboxSettings, Scenario, load_scenario};

thread_local! {
    /// The address of the sandbox in place of the live host.
    static SANDBOX: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Connects to the sandbox instead of the address.
fn connect(
    address: &GatewayAddress,
    endpoint: Endpoint,
    key: SecretString,
    rules: AnswerRules,
) -> Result<JsonApi, JsonApiError> {
    let base_url = SANDBOX.with_borrow(Clone::clone);
    JsonApi::new(&GatewayAddress { base_url, ..address.clone() }, endpoint, key, rules)
}

/// A live campaign to three recipients, whose profile requires an approval for more than `above` recipients.
struct ApprovalWorld {
    world: TestWorld,
    key: PrivateKey,
    rule: String,
    _sandbox: Sandbox,
}

impl ApprovalWorld {
    async fn new(above: u32) -> Self {
        Self::with_scenario(above, Scenario::default()).await
    }

    async fn with_scenario(above: u32, scenario: Scenario) -> Self {
        let mut world = TestWorld::new().await;
        let scenario = Arc::new(scenario);
        let settings = SandboxSettings { key: "s3cret".to_owned().into(), scenario, ..SandboxSettings::default() };
        let sandbox = Sandbox::start(settings).await.unwrap();
        SANDBOX.set(sandbox.base_url());
        world.adapters.connect = connect;
        let (line, public) = PrivateKey::generate_key_pair().unwrap();
        let file = world.folder.path().join("olha.key");
        fs::write(&file, line.expose_secret()).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let key = PrivateKey::read(&file).unwrap();
        let rule = format!("  approval: {{ above: {above}, by: {{ Olha: \"{public}\" }} }}\n");
        let fixture = Self { world, key, rule, _sandbox: sandbox };
        fixture.write_profile(&fixture.rule);
        fixture
    }

    fn write_profile(&self, rule: &str) {
        let profile = "production:\n  base_url: https://gateway.example\n  api_key: { file: key }\n  rate: 10/s\n";
        self.write("gateways.yaml", &format!("{profile}{rule}"));
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.world.folder.path().join(name), text).unwrap();
    }

    /// Writes a list of this many recipients.
    fn write_list(&self, recipients: u32) {
        let rows: String = (1..=recipients).map(|number| format!("+38050000000{number}\n")).collect();
        self.write("sale.csv", &format!("phone\n{rows}"));
    }

    async fn send(&self, request: RunRequest) -> Result<RunOutcome, Error> {
        let request = RunRequest { offline: true, no_wait: true, ..request };
        self.world.launch(Some("production"), request, FixedConsent::yes(), Interrupt::None).await
    }

    /// Loads the campaign as of now, or for an occurrence.
    fn inputs(&self, occurrence: Option<&Occurrence>) -> Arc<Inputs> {
        let Adapters { profiles, clock, .. } = &self.world.adapters;
        let (file, gateway) = (self.world.folder.path().join("sale.yaml"), Some("production"));
        Arc::new(match occurrence {
            Some(occurrence) => load_occurrence(profiles, &file, gateway, occurrence).unwrap(),
            None => Inputs::load(&file, gateway, profiles, CampaignDay::Of(clock())).unwrap(),
        })
    }

    async fn launch(&self, inputs: Arc<Inputs>, request: RunRequest) -> Result<RunOutcome, Error> {
        let Adapters { state, profiles, .. } = &self.world.adapters;
        let request = RunRequest { offline: true, no_wait: true, ..request };
        let launch = Launch::prepare(inputs, request, ProtectedFiles { state, profiles })?;
        let (_sender, interrupt) = watch::channel(Interrupt::None);
        launch.run(self.world.adapters.clone(), FixedConsent::yes(), interrupt).await
    }

    /// Stores a plan as an earlier version did, without programs, URLs and sources, and returns its digest.
    async fn store_earlier_plan(&self, inputs: Arc<Inputs>, request: &RunRequest) -> String {
        let plan = create_plan(&self.world.adapters, &inputs, request).await.unwrap();
        let options = PlanOptions { resources: BTreeMap::new(), on_in_doubt: None, ..plan.planned.options.clone() };
        let earlier = PlannedCampaign { options, ..plan.planned };
        let digest = store_plan(&self.world.adapters, earlier, &inputs.destination).await.unwrap();
        assert_ne!(digest, plan.digest);
        digest
    }

    /// Has Olha sign a plan.
    async fn approve(&self, digest: &str) -> Result<(), Error> {
        let adapters = &self.world.adapters;
        let approving = review_plan(adapters, digest).await?;
        approve_plan(adapters, &approving, Some(&self.key), None, FixedConsent::yes().as_ref()).await.map(drop)
    }

    async fn retry(&self, run: RunId) -> Result<RunOutcome, Error> {
        let Adapters { state, profiles, clock, .. } = &self.world.adapters;
        let file = self.world.folder.path().join("sale.yaml");
        let inputs = Inputs::load(&file, Some("production"), profiles, CampaignDay::Of(clock()))?;
        let request = RunRequest { offline: true, no_wait: true, ..RunRequest::default() };
        let launch = Launch::prepare(Arc::new(inputs), request, ProtectedFiles { state, profiles })?;
        let scope = RetryScope { run, states: vec![RowState::Rejected], errors: Vec::new() };
        let (_sender, interrupt) = watch::channel(Interrupt::None);
        launch.retry(self.world.adapters.clone(), FixedConsent::yes(), interrupt, scope).await
    }

    /// Plans the remaining messages, approves the plan as Olha, and returns its digest.
    async fn create_approved_plan(&self, request: &RunRequest) -> String {
        let adapters = &self.world.adapters;
        let file = self.world.folder.path().join("sale.yaml");
        let inputs =
            Inputs::load(&file, Some("production"), &adapters.profiles, CampaignDay::Of((adapters.clock)())).unwrap();
        let digest = create_plan(adapters, &Arc::new(inputs), request).await.unwrap().digest;
        let approving = review_plan(adapters, &digest).await.unwrap();
        approve_plan(adapters, &approving, Some(&self.key), None, FixedConsent::yes().as_ref()).await.unwrap();
        digest
    }
}

/// The number of messages that need an approval, and the number of earlier unapproved messages.
fn unapproved_counts(outcome: Result<RunOutcome, Error>) -> (u64, u64) {
    match outcome {
        Err(Error::Plan(PlanRefusal::Unapproved { number, sent, .. })) => (number, sent),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn approval_limit_counts_all_runs_of_an_edition() {
    let fixture = ApprovalWorld::new(3).await;
    expect_ended(fixture.send(RunRequest::default()).await);
    fixture.write_list(4);
    assert_eq!(unapproved_counts(fixture.send(RunRequest::default()).await), (1, 3), "the list grew");
    let again = RunRequest { round: Round::Again(4), ..RunRequest::default() };
    assert_eq!(unapproved_counts(fixture.send(again).await), (4, 3), "the same recipients again");
    fixture.write("sale.yaml", &campaign_text("edition: second\n"));
    let other = expect_ended(fixture.send(RunRequest { limit: Some(3), ..RunRequest::default() }).await);
    assert_eq!(other.run.edition, "second", "another edition counts by itself");
    assert_eq!(unapproved_counts(fixture.send(RunRequest::default()).await), (1, 3));
}

#[tokio::test]
async fn approval_limit_counts_a_replaced_run() {
    let fixture = ApprovalWorld::new(3).await;
    expect_ended(fixture.send(RunRequest { limit: Some(2), ..RunRequest::default() }).await);
    fixture.write_list(5);
    let changed = RunRequest { accept_changes: true, ..RunRequest::default() };
    assert_eq!(unapproved_counts(fixture.send(changed).await), (3, 2));
}

#[tokio::test]
async fn approval_covers_only_later_messages() {
    let fixture = ApprovalWorld::new(2).await;
    expect_ended(fixture.send(RunRequest { limit: Some(2), ..RunRequest::default() }).await);
    assert_eq!(unapproved_counts(fixture.send(RunRequest::default()).await), (1, 2));
    let digest = fixture.create_approved_plan(&RunRequest::default()).await;
    let resumed = expect_ended(fixture.send(RunRequest { plan: Some(digest), ..RunRequest::default() }).await);
    assert_eq!(resumed.run.name(), "sale@1", "the same run is resumed");
    fixture.write_list(4);
    assert_eq!(unapproved_counts(fixture.send(RunRequest::default()).await), (1, 2), "the first two still count");
}

#[tokio::test]
async fn approved_messages_do_not_count_towards_the_limit() {
    let fixture = ApprovalWorld::new(2).await;
    let digest = fixture.create_approved_plan(&RunRequest::default()).await;
    expect_ended(fixture.send(RunRequest { plan: Some(digest), ..RunRequest::default() }).await);
    fixture.write_list(5);
    expect_ended(fixture.send(RunRequest::default()).await);
    fixture.write_list(6);
    assert_eq!(unapproved_counts(fixture.send(RunRequest::default()).await), (1, 2));
}

#[tokio::test]
async fn approval_limit_counts_retries_of_rejected_messages() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.yaml");
    fs::write(&file, "faults:\n  - { when: { suffix: \"1\" }, item_error: No route }\n").unwrap();
    let fixture = ApprovalWorld::with_scenario(1, load_scenario(&file).value.unwrap()).await;
    fixture.write_list(1);
    let rejected = expect_ended(fixture.send(RunRequest::default()).await);
    assert_eq!(rejected.counts.get(RowState::Rejected), 1);
    fixture.write("sale.csv", "phone\n+380500000002\n");
    expect_ended(fixture.send(RunRequest::default()).await);
    fixture.write_list(1);
    assert_eq!(unapproved_counts(fixture.retry(rejected.run.key).await), (1, 1));
}

#[tokio::test]
async fn account_keeps_its_approval_rule_until_a_person_weakens_it() {
    let fixture = ApprovalWorld::new(2).await;
    assert_eq!(unapproved_counts(fixture.send(RunRequest::default()).await), (3, 0));
    let weaker = fixture.rule.replace("above: 2", "above: 50");
    for rule in ["", weaker.as_str()] {
        fixture.write_profile(rule);
        let result = fixture.send(RunRequest::default()).await;
        assert!(matches!(result, Err(Error::WeakerApproval(_))), "{rule}: {result:?}");
    }
    let stricter = fixture.rule.replace("above: 2", "above: 1");
    fixture.write_profile(&stricter);
    assert_eq!(unapproved_counts(fixture.send(RunRequest::default()).await), (3, 0));
    fixture.write_profile(&fixture.rule);
    let looser = fixture.send(RunRequest::default()).await;
    assert!(matches!(looser, Err(Error::WeakerApproval(_))), "the stricter rule is kept: {looser:?}");
}

#[tokio::test]
async fn another_profile_cannot_replace_an_accounts_approval_rule() {
    let fixture = ApprovalWorld::new(2).await;
    assert_eq!(unapproved_counts(fixture.send(RunRequest::default()).await), (3, 0));
    let (_, eve) = PrivateKey::generate_key_pair().unwrap();
    let approval_key = format!("  approval: {{ above: 1000, by: {{ Eve: \"{eve}\" }} }}\n");
    let profile = |name: &str, host: &str, keys: &str| {
        format!("{name}:\n  base_url: https://{host}\n  api_key: {{ file: key }}\n  rate: 10/s\n{keys}")
    };
    let adapters = &fixture.world.adapters;
    let plan_through = async |name: &str, gateways: String| {
        fixture.write("gateways.yaml", &gateways);
        let file = fixture.world.folder.path().join("sale.yaml");
        let day = CampaignDay::Of((adapters.clock)());
        let inputs = Inputs::load(&file, Some(name), &adapters.profiles, day).unwrap();
        create_plan(adapters, &Arc::new(inputs), &RunRequest::default()).await
    };
    let fresh = format!("  account: fresh\n{approval_key}");
    for (name, host, keys) in [
        ("account", "gateway.example", "  account: fresh\n"),
        ("dot", "gateway.example.", ""),
        ("own-rule", "gateway.example", &fresh),
        ("async", "second.example", "  async_url: https://gateway.example\n"),
    ] {
        let result = plan_through(name, profile(name, host, keys)).await;
        assert!(matches!(result, Err(Error::WeakerApproval(_))), "{name}: {result:?}");
    }
    plan_through("launder", profile("launder", "second.example", &fresh)).await.unwrap();
    fixture.world.adapters.ledger.remember_host("launder", "gateway.example", HostChange::Replace).await.unwrap();
    let laundered = plan_through("launder", profile("launder", "gateway.example", &approval_key)).await;
    assert!(matches!(laundered, Err(Error::WeakerApproval(_))), "{laundered:?}");
    fixture.write_profile(&fixture.rule);
    assert_eq!(unapproved_counts(fixture.send(RunRequest::default()).await), (3, 0), "the first profile is unchanged");
}

/// The campaign key for notifications by a program.
const NOTIFY: &str = "notify: { command: [notify-send] }\n";

/// An occurrence, and the request of its schedule.
fn scheduled_occurrence() -> (Occurrence, RunRequest) {
    let nominal = "2026-11-26T10:00".parse().unwrap();
    let occurrence = Occurrence::at_local_time(nominal, &jiff::tz::TimeZone::UTC).unwrap();
    let request = RunRequest {
        occurrence: Some(occurrence.clone()),
        schedule_digest: Some("armed".to_owned()),
        ..RunRequest::default()
    };
    (occurrence, request)
}

#[tokio::test]
async fn plan_from_an_earlier_version_still_sends_a_plain_campaign() {
    let fixture = ApprovalWorld::new(2).await;
    let digest = fixture.store_earlier_plan(fixture.inputs(None), &RunRequest::default()).await;
    fixture.approve(&digest).await.unwrap();
    let run = expect_ended(fixture.send(RunRequest { plan: Some(digest), ..RunRequest::default() }).await);
    assert_eq!(run.sent, 3);
}

#[tokio::test]
async fn earlier_plan_that_omits_the_notify_program_is_refused() {
    let fixture = ApprovalWorld::new(2).await;
    fixture.write("sale.yaml", &campaign_text(NOTIFY));
    let digest = fixture.store_earlier_plan(fixture.inputs(None), &RunRequest::default()).await;
    let differences = |error| match error {
        Error::Plan(PlanRefusal::Changed { differences, .. }) => differences,
        other => panic!("{other:?}"),
    };
    let named = ["the program `notify.command` (which an earlier version of campaign did not record in the plan)"];
    assert_eq!(differences(fixture.approve(&digest).await.unwrap_err()), named);
    let sent = fixture.send(RunRequest { plan: Some(digest), ..RunRequest::default() }).await;
    assert_eq!(differences(sent.unwrap_err()), named);
}

#[tokio::test]
async fn occurrence_approved_before_an_upgrade_still_runs() {
    let fixture = ApprovalWorld::new(2).await;
    fixture.write("sale.yaml", &campaign_text(NOTIFY));
    let (occurrence, request) = scheduled_occurrence();
    let digest = fixture.store_earlier_plan(fixture.inputs(Some(&occurrence)), &request).await;
    fixture.approve(&digest).await.unwrap();
    let run = expect_ended(fixture.launch(fixture.inputs(Some(&occurrence)), request).await);
    assert_eq!(run.sent, 3);
    assert_eq!(fixture.world.adapters.ledger.list_approvals(ApprovalFilter::Run(run.run.key)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn run_approved_before_an_upgrade_resumes_after_it() {
    let fixture = ApprovalWorld::new(0).await;
    let (occurrence, request) = scheduled_occurrence();
    let inputs = || fixture.inputs(Some(&occurrence));
    let digest = fixture.store_earlier_plan(inputs(), &request).await;
    fixture.approve(&digest).await.unwrap();
    let limited = RunRequest { limit: Some(1), ..request.clone() };
    let earlier = fixture.store_earlier_plan(inputs(), &limited).await;
    fixture.approve(&earlier).await.unwrap();
    assert_eq!(expect_ended(fixture.launch(inputs(), limited).await).sent, 1);
    assert_eq!(expect_ended(fixture.launch(inputs(), request).await).sent, 2);
}

fn options(keys: &[&str]) -> PlanOptions {
    let resources = keys.iter().map(|key| ((*key).to_owned(), "00".to_owned())).collect();
    PlanOptions { resources, ..PlanOptions::default() }
}

#[test]
fn options_without_resources_serialize_as_in_earlier_versions() {
    let first = r#"{"rows":null,"limit":null,"again":false,"occurrence":null}"#;
    assert_eq!(serde_json::to_string(&PlanOptions::default()).unwrap(), first);
    let read: PlanOptions = serde_json::from_str(first).unwrap();
    assert!(read.is_from_earlier_version());
    assert_eq!(options(&["recipients.file"]).to_earlier_version(), Some(read));
}

#[test]
fn earlier_digest_is_valid_only_for_resources_that_it_covers() {
    let known = ["recipients.file", "data.stores", "profile.hook.public_url"];
    assert!(options(&known).to_earlier_version().is_some());
    for key in ["notify.command", "notify.url", "recipients.suppress", "recipients.url", "recipients.command"] {
        assert_eq!(options(&[key]).to_earlier_version(), None, "{key}");
        let occurrence = Some(("2026-11-26 10:00".to_owned(), "UTC".to_owned()));
        assert!(PlanOptions { occurrence, ..options(&[key]) }.to_earlier_version().is_some(), "{key}");
    }
    let resends = PlanOptions { on_in_doubt: Some(InDoubtPolicy::ResendIfNotFound), ..options(&[]) };
    assert_eq!(resends.to_earlier_version(), None);
}

/// The campaign with these keys above its list.
fn campaign_text(keys: &str) -> String {
    let sms = "channels:\n  - sms: { signature: Olena, message: Hello }\n";
    format!("name: sale\n{keys}recipients:\n  file: sale.csv\n{sms}")
}
