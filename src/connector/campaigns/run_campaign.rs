//! `run_campaign`: sends what was planned, once a person approved it in a terminal of their own.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

use super::folder::{OpenFolder, describe_error, refuse_campaign};
use super::{campaign_arguments_schema, number_schema};
use crate::connector::caller::Caller;
use crate::connector::error::ToolError;
use crate::connector::schema::DIGEST;
use crate::connector::tool::{McpTool, ToolAnnotations};
use crate::connector::tools::{object_schema, text_schema};
use crate::delivery::Interrupt;
use crate::gateway::BoxFuture;
use crate::notify::{self, AllowedPrograms};
use crate::report::{format_count, format_counts};
use crate::runs::{
    Adapters, Consent, ConsentRefusal, EndedRun, Error, Inputs, Launch, NothingLeft, PlanRefusal, Proposal,
    ProposalKind, ProtectedFiles, RunEvent, RunObserver, RunOutcome, RunRequest,
};

pub(super) const TOOL: McpTool = McpTool {
    name: "run_campaign",
    title: "Run a campaign",
    description: "SENDS MESSAGES TO MANY PEOPLE AND COSTS MONEY. Sends a planned campaign after a person has approved \
                  the digest from plan_campaign in their own terminal. Until then the result is `pending` and nothing \
                  is sent: show the plan and `how_to` to the person you work for, and do not try another way. When the \
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
        object_schema(
            json!({
                "started": { "type": "boolean", "description": "Whether messages are being sent now." },
                "run": text_schema("The name of the run."),
                "pending": { "type": "boolean", "description": "Whether a person must approve the digest first." },
                "messages": number_schema("The number of messages that would be sent, if the result is `pending`."),
                "how_to": text_schema("What to do next."),
            }),
            &["started", "how_to"],
        )
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let folder = caller.open_campaigns()?;
            let file = folder.find_file(&arguments)?;
            let digest = arguments.text("digest");
            let inputs = folder.load_inputs_to_send(file).await.map_err(refuse_campaign)?;
            start_run(caller, &folder, inputs, digest).await
        })
    },
};

/// Nobody who could be asked: a run goes by what was approved, or not at all.
struct NoConsent;

impl Consent for NoConsent {
    fn can_confirm(&self) -> bool {
        false
    }

    fn ask<'a>(&'a self, _: Proposal<'a>) -> BoxFuture<'a, Result<(), ConsentRefusal>> {
        Box::pin(async { Err(ConsentRefusal::NoTerminal) })
    }
}

/// Begins a run in a task of its own, or goes on with it, and tells how that went.
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
    let launch = Launch::prepare(inputs, request, files).map_err(refuse_campaign)?;
    let (adapters, mut beginning) = observe_start(folder.adapters);
    let task = send_run(launch, adapters, (caller.interrupt.clone(), programs));
    // Whoever wanted it may hang up.
    let mut task = folder.campaigns.runs.spawn(task);
    let ended = tokio::select! {
        biased;
        Some(run) = beginning.recv() => {
            return Ok(json!({ "started": true, "run": run, "how_to": "call run_status for the progress of the run" }));
        }
        ended = &mut task => ended,
    };
    match ended {
        Ok(Ok(None)) => Ok(json!({ "started": true, "how_to": "call run_status for the progress of the run" })),
        Ok(Ok(Some(nothing))) => Ok(json!({ "started": false, "messages": 0, "how_to": describe_no_run(&nothing) })),
        Ok(Err(
            Error::NotConfirmed { what: ProposalKind::Run(messages), .. }
            | Error::Plan(PlanRefusal::Unapproved { number: messages, .. }),
        )) => Ok(json!({ "started": false, "pending": true, "messages": messages, "how_to": how_to_approve })),
        Ok(Err(error)) => Err(refuse_campaign(error)),
        Err(_) => Err(ToolError::new("internal", "the run stopped because the connector failed; call run_status")),
    }
}

/// The same adapters, and the name of the run that begins with them; how it is getting on is for run_status.
fn observe_start(adapters: &Adapters) -> (Adapters, UnboundedReceiver<String>) {
    let (begun, beginning) = unbounded_channel();
    let told = Arc::clone(&adapters.observer);
    let observer: RunObserver = Arc::new(move |event| match event {
        // Nobody waits for it any more where the client hung up.
        RunEvent::SendingBegins { run, .. } => drop(begun.send(run)),
        RunEvent::Sending(_) | RunEvent::SendingEnded => {}
        event => told(event),
    });
    (Adapters { observer, ..adapters.clone() }, beginning)
}

/// Sends a run to its end, or until the connector is asked to end; who wants to know how it went is told. If no row gets a
/// message, no run begins.
async fn send_run(
    launch: Launch,
    adapters: Adapters,
    (mut interrupt, programs): (watch::Receiver<Interrupt>, AllowedPrograms),
) -> Result<Option<NothingLeft>, Error> {
    let (ledger, clock) = (Arc::clone(&adapters.ledger), adapters.clock);
    let ended = match launch.run(adapters, Arc::new(NoConsent), interrupt.clone()).await? {
        RunOutcome::Ended(ended) => ended,
        RunOutcome::NothingLeft(nothing) => return Ok(Some(*nothing)),
    };
    let EndedRun { run, stop, results, .. } = *ended;
    tracing::info!(run = run.name(), stopped = stop.is_some(), "ended");
    if let Some(Err(error)) = results {
        tracing::error!("cannot write the results of {}: {}", run.name(), describe_error(&error));
    }
    tokio::select! {
        told = notify::notify_at_run_end(ledger.as_ref(), clock, &programs) => {
            if let Err(error) = told {
                tracing::warn!("cannot send notifications: {error}");
            }
        }
        _ = interrupt.wait_for(|interrupt| matches!(interrupt, Interrupt::Immediate(_))) => {}
    }
    Ok(None)
}

/// That no run began, because no row gets a message.
fn describe_no_run(nothing: &NothingLeft) -> String {
    let survey = &nothing.survey.survey;
    let rows = format_count(survey.recipients, "row");
    format!(
        "no run was started: no row of the list gets a message now ({rows}: {}). No action is needed",
        format_counts(&survey.count_by_state())
    )
}
