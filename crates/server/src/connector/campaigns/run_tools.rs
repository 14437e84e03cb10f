//! Tools that plan a campaign and run an approved plan, and the pauses of the runs that this process sends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{
    OpenFolder, abroad_schema, add_properties, campaign_arguments_schema, counts_schema, describe_error, number_schema,
};
use crate::connector::arguments::DIGEST;
use crate::connector::error::ToolError;
use crate::connector::methods::Caller;
use crate::connector::tools::{McpTool, ToolAnnotations, object_schema, text_schema};
use campaign_core::finding::escape_to_one_line;
use campaign_engine::delivery::{DeliveryEvent, Interrupt};
use campaign_engine::report::{format_count, format_counts};
use campaign_gateway::BoxFuture;
use campaign_runs::notify::{self, AllowedPrograms};
use campaign_runs::{
    Adapters, Consent, ConsentRefusal, CreatedPlan, EndedRun, Error, Inputs, Launch, NothingLeft, PlanRefusal,
    Proposal, ProposalKind, ProtectedFiles, RunEvent, RunObserver, RunOutcome, RunRequest,
};

pub(super) const PLAN_CAMPAIGN: McpTool = McpTool {
    name: "plan_campaign",
    title: "Plan a campaign",
    description: "Plans a campaign run. Returns the number of recipients, the number of message parts, the cost and \
                  a digest, which is valid for 30 days. A person approves the digest in a terminal; then \
                  run_campaign sends the campaign. Costs nothing and sends nothing.",
    annotations: ToolAnnotations { read_only: false, destructive: false, idempotent: true, open_world: false },
    input: || campaign_arguments_schema(json!({})),
    output: || {
        object_schema(
            json!({
                "digest": text_schema("The digest that identifies the plan."),
                "gateway": text_schema("The gateway that the run would use."),
                "rows": number_schema("The number of rows in the list."),
                "counts": counts_schema(),
                "messages": number_schema("The number of messages that would be sent."),
                "parts": number_schema("The total number of message parts."),
                "cost": { "type": "number", "description": "The maximum cost, if the profile has prices." },
                "currency": text_schema("The currency of `cost`."),
                "abroad": abroad_schema(),
                "on_in_doubt": text_schema("How messages whose outcome is unknown are handled: hold, assume_sent \
                                     or resend_if_not_found."),
                "resources": {
                    "type": "array", "items": resource_schema(),
                    "description": "The programs, addresses and sources that the campaign uses. If any of them \
                                    changes, the digest changes.",
                },
                "notes": {
                    "type": "array", "items": { "type": "string" },
                    "description": "How a run through this connector differs from the campaign file. Show this to the \
                                    person you work for.",
                },
                "how_to": text_schema("What to do before the campaign can be sent."),
            }),
            &["digest", "gateway", "rows", "counts", "messages", "on_in_doubt", "resources", "how_to"],
        )
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let folder = caller.open_campaigns()?;
            let file = folder.find_file(&arguments)?;
            let inputs = folder.load_inputs_to_send(file).await.map_err(|error| folder.to_tool_error(error))?;
            let _permit = folder.acquire_list_permit().await;
            let plan = campaign_runs::create_plan(folder.adapters, &inputs, &RunRequest::default()).await;
            let plan = plan.map_err(|error| folder.to_tool_error(error))?;
            let mut result = plan_json(&plan, folder.gateway, &describe_next_step(&folder, &inputs, &plan))?;
            if let Some(note) = super::notify_command_note(&inputs) {
                result["notes"] = json!([note]);
            }
            Ok(result)
        })
    },
};

/// Describes what must happen before the plan is sent; a plan without messages needs no approval.
fn describe_next_step(folder: &OpenFolder<'_>, inputs: &Inputs, plan: &CreatedPlan) -> String {
    match plan.planned.messages {
        0 => "no row gets a message, so run_campaign would not start a run: change the list or the campaign, then \
              call plan_campaign again"
            .to_owned(),
        _ => folder.describe_approval(inputs, &plan.digest),
    }
}

fn resource_schema() -> Value {
    object_schema(
        json!({
            "key": text_schema("The key that names the resource, such as notify.url. Profile keys start with \
                                `profile.`"),
            "kind": text_schema("`program`, `address` or `source`."),
            "value": text_schema("The program, address or source itself. Parameter and header values are hidden."),
        }),
        &["key", "kind", "value"],
    )
}

fn plan_json(plan: &CreatedPlan, gateway: &str, how_to: &str) -> Result<Value, ToolError> {
    let figures = serde_json::to_value(plan.figures());
    let mut result = figures.map_err(|_| ToolError::new("internal", "cannot return the plan"))?;
    result["gateway"] = json!(gateway);
    result["how_to"] = json!(how_to);
    if !plan.forecast.abroad.is_empty() {
        result["abroad"] = json!(plan.forecast.abroad);
    }
    Ok(super::remove_nulls(result))
}

pub(super) const RUN_CAMPAIGN: McpTool = McpTool {
    name: "run_campaign",
    title: "Run a campaign",
    description: "SENDS MESSAGES TO MANY PEOPLE AND COSTS MONEY. Sends a planned campaign after a person has approved \
                  the digest from plan_campaign in their own terminal. Until then the result is `pending` and nothing \
                  is sent: show the plan and `how_to` to the user, and do not try another way. When the \
                  run starts, the result contains its name; call run_status for its progress.",
    annotations: ToolAnnotations::SENDING,
    input: || {
        let digest = json!({
            "type": "string", "pattern": DIGEST,
            "description": "The digest returned by plan_campaign.",
        });
        let mut schema = campaign_arguments_schema(json!({ "digest": digest }));
        schema["required"] = json!(["campaign", "digest"]);
        schema
    },
    output: || {
        let mut properties = json!({
            "started": {
                "type": "boolean",
                "description": "Whether the run has started. While `waiting_until` is in the future, it sends no \
                                messages.",
            },
            "run": text_schema("The name of the run."),
            "pending": { "type": "boolean", "description": "Whether a person must approve the digest first." },
            "messages": number_schema("The number of messages that would be sent, if the result is `pending`."),
            "how_to": text_schema("What to do next."),
        });
        add_properties(&mut properties, wait_schemas());
        object_schema(properties, &["started", "how_to"])
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let folder = caller.open_campaigns()?;
            let file = folder.find_file(&arguments)?;
            let digest = arguments.text("digest");
            let inputs = folder.load_inputs_to_send(file).await.map_err(|error| folder.to_tool_error(error))?;
            start_run(caller, &folder, inputs, digest).await
        })
    },
};

/// A consent that is never given: without an approved plan, a run is refused.
struct NoConsent;

impl Consent for NoConsent {
    fn can_confirm(&self) -> bool {
        false
    }

    fn ask<'a>(&'a self, _: Proposal<'a>) -> BoxFuture<'a, Result<(), ConsentRefusal>> {
        Box::pin(async { Err(ConsentRefusal::NoTerminal) })
    }
}

/// Starts or resumes a run in a separate task. Returns when sending starts, or when the run ends before that.
async fn start_run(
    caller: &Caller<'_>,
    folder: &OpenFolder<'_>,
    inputs: Arc<Inputs>,
    digest: String,
) -> Result<Value, ToolError> {
    let how_to_approve = folder.describe_approval(&inputs, &digest);
    let profile = inputs.destination.profile();
    let programs = AllowedPrograms::OfProfile(
        profile.and_then(|profile| profile.notify.as_ref()).map(|notify| notify.method.clone()),
    );
    let request = RunRequest { plan: Some(digest), approved_only: true, ..RunRequest::default() };
    let files = ProtectedFiles { state: &folder.adapters.state, profiles: &folder.adapters.profiles };
    let launch = Launch::prepare(inputs, request, files).map_err(|error| folder.to_tool_error(error))?;
    let (adapters, mut steps) = observe_sending(folder.adapters, Arc::clone(&folder.campaigns.waits));
    let task = send_run(launch, adapters, caller.interrupt.clone(), programs);
    // The run has its own task, so that it continues if the caller disconnects.
    let mut task = folder.campaigns.runs.spawn(task);
    let ended = tokio::select! {
        biased;
        Some(SendingStep::Begins(run)) = steps.recv() => return Ok(describe_start(&run, &mut steps).await),
        ended = &mut task => ended,
    };
    match ended {
        // The run has already ended.
        Ok(Ok(None)) => Ok(json!({ "started": true, "how_to": "call run_status for the progress of the run" })),
        Ok(Ok(Some(nothing_left))) => {
            Ok(json!({ "started": false, "messages": 0, "how_to": describe_no_run(&nothing_left) }))
        }
        Ok(Err(
            Error::NotConfirmed { proposal: ProposalKind::Run(messages), .. }
            | Error::Plan(PlanRefusal::Unapproved { number: messages, .. }),
        )) => Ok(json!({ "started": false, "pending": true, "messages": messages, "how_to": how_to_approve })),
        Ok(Err(error)) => Err(folder.to_tool_error(error)),
        Err(_) => Err(ToolError::new("internal", "the run stopped because the connector failed; call run_status")),
    }
}

/// The time for which a call waits for the first request or pause of its run.
const FIRST_STEP_TIMEOUT: Duration = Duration::from_secs(1);

/// Describes a run that has started, with its pause if nothing can be sent now.
async fn describe_start(run: &str, steps: &mut UnboundedReceiver<SendingStep>) -> Value {
    let mut result = json!({ "started": true, "run": run, "how_to": "call run_status for the progress of the run" });
    if let Ok(Some(SendingStep::Waits(wait))) = timeout(FIRST_STEP_TIMEOUT, steps.recv()).await {
        wait.add_to(&mut result);
        result["how_to"] = json!("nothing is sent before `waiting_until`: tell the user; call run_status after that");
    }
    result
}

/// A step of the run that a call started.
enum SendingStep {
    /// The run with this name begins.
    Begins(String),
    /// The run sends nothing for now.
    Waits(RunWait),
    /// The run sends messages, or ends.
    Continues,
}

/// Creates adapters whose observer passes on the steps of sending and records pauses. Progress is omitted, because
/// `run_status` reports it.
fn observe_sending(adapters: &Adapters, waits: Arc<RunWaits>) -> (Adapters, UnboundedReceiver<SendingStep>) {
    let (step_sender, steps) = unbounded_channel();
    let (forward, clock, current_run) = (Arc::clone(&adapters.observer), adapters.clock, Mutex::new(String::new()));
    let observer: RunObserver = Arc::new(move |event| {
        let mut run = current_run.lock().unwrap_or_else(PoisonError::into_inner);
        let step = match event {
            RunEvent::SendingBegins { run: name, .. } => {
                run.clone_from(&name);
                SendingStep::Begins(name)
            }
            RunEvent::Sending(DeliveryEvent::Waiting { reason, time, .. }) => {
                let wait = RunWait::new(&reason, clock().checked_add(time).unwrap_or(Timestamp::MAX));
                waits.record(&run, Some(wait.clone()));
                SendingStep::Waits(wait)
            }
            RunEvent::Sending(DeliveryEvent::Settled { .. } | DeliveryEvent::Stopping { .. })
            | RunEvent::SendingEnded => {
                waits.record(&run, None);
                SendingStep::Continues
            }
            RunEvent::Sending(_) => return,
            event => return forward(event),
        };
        // Passing on a step fails if the call already has its result or the client disconnected.
        let _ = step_sender.send(step);
    });
    (Adapters { observer, ..adapters.clone() }, steps)
}

/// Sends a run until it ends or the connector stops, then sends notifications. If no row gets a message, no run is
/// created and [`NothingLeft`] is returned.
async fn send_run(
    launch: Launch,
    adapters: Adapters,
    mut interrupt: watch::Receiver<Interrupt>,
    programs: AllowedPrograms,
) -> Result<Option<NothingLeft>, Error> {
    let (ledger, clock) = (Arc::clone(&adapters.ledger), adapters.clock);
    let ended = match launch.run(adapters, Arc::new(NoConsent), interrupt.clone()).await? {
        RunOutcome::Ended(ended) => ended,
        RunOutcome::NothingLeft(nothing_left) => return Ok(Some(*nothing_left)),
    };
    let EndedRun { run, stop, results, .. } = *ended;
    tracing::info!(run = run.name(), stopped = stop.is_some(), "ended");
    if let Some(Err(error)) = results {
        tracing::error!("cannot write the results of {}: {}", run.name(), describe_error(&error));
    }
    tokio::select! {
        notified = notify::notify_at_run_end(ledger.as_ref(), clock, &programs) => {
            if let Err(error) = notified {
                tracing::warn!("cannot send notifications: {error}");
            }
        }
        _ = interrupt.wait_for(|interrupt| matches!(interrupt, Interrupt::Immediate(_))) => {}
    }
    Ok(None)
}

/// Describes that no run was started, because no row gets a message.
fn describe_no_run(nothing_left: &NothingLeft) -> String {
    let survey = &nothing_left.survey.survey;
    let rows = format_count(survey.recipients, "row");
    format!(
        "no run was started: no row in the list gets a message now ({rows}: {}). No action is needed",
        format_counts(&survey.count_by_state())
    )
}

/// A pause of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunWait {
    /// The reason, on one line.
    reason: String,
    /// The end of the pause.
    until: Timestamp,
}

impl RunWait {
    pub(super) fn new(reason: &str, until: Timestamp) -> Self {
        Self { reason: escape_to_one_line(reason), until }
    }

    /// Adds the pause to the result of a tool.
    pub(super) fn add_to(&self, result: &mut Value) {
        result["waiting_until"] = json!(self.until.to_string());
        result["waiting_for"] = json!(self.reason);
    }
}

/// The schemas of the members that [`RunWait::add_to`] adds.
pub(super) fn wait_schemas() -> Value {
    json!({
        "waiting_until": text_schema("The end of the current pause, for example when the sending window opens. Nothing \
                                      is sent before that."),
        "waiting_for": text_schema("The reason for the pause."),
    })
}

/// The current pauses, by run.
#[derive(Debug, Default)]
pub(super) struct RunWaits(Mutex<HashMap<String, RunWait>>);

impl RunWaits {
    /// Records a pause of a run. `None` means that the pause has ended.
    pub(super) fn record(&self, run: &str, wait: Option<RunWait>) {
        match wait {
            Some(wait) => drop(self.lock().insert(run.to_owned(), wait)),
            None => drop(self.lock().remove(run)),
        }
    }

    /// Returns the pause of a run at this time, if there is one.
    pub(super) fn find(&self, run: &str, now: Timestamp) -> Option<RunWait> {
        self.lock().get(run).filter(|wait| wait.until > now).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, RunWait>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
