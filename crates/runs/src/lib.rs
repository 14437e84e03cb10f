//! Runs of campaigns for every surface, such as the command line and the dashboard. The caller passes a [`RunRequest`]
//! and a [`Consent`], a [`RunObserver`] gets events, and the result is an outcome or an [`Error`].
//!
//! Errors have messages in plain English. Commands to suggest, exit codes, terminals, signals and the choice of
//! adapters belong to the surfaces, which pass their choices as [`Adapters`].

mod account;
mod begin;
mod check_campaign;
pub mod draft;
mod editing;
mod erasure;
mod error;
mod fetch;
mod find;
mod guard;
mod held_run;
mod inputs;
mod launch;
mod ledger_health;
mod list;
pub mod notify;
mod number_files;
mod occurrence;
mod opt_outs;
mod plan;
mod policy;
mod ports;
mod profiles;
mod receipts;
mod recipient_consent;
mod reconcile;
mod resolve;
mod results;
mod resume;
mod retry_rows;
mod schedule;
mod send;
mod single;
mod test_messages;
#[cfg(test)]
mod tests;
mod worker;

use begin::refuse_start;

pub use account::{GatewayAccount, KeylessAccount, NewAccount, TemplateChange, add_gateway};
pub use check_campaign::{
    CheckedCampaign, DryRun, OnlineAnswer, ask_online, check_campaign, compose_made_up_messages, dry_run,
    run_campaign_tests,
};
pub use editing::{ColumnsKey, DraftCampaign, ListKey, SampledColumn};
pub use erasure::{ForgottenPerson, ForgottenRows, OldRuns, PurgeBlocker, forget_person, list_dry_runs_of, purge_runs};
pub use error::{
    ChangedInputs, DecisionRefusal, EarlierEdition, Error, InputChanges, PlanRefusal, RetryRefusal, RunPhase,
    ScheduleRefusal, TemplateRefusal, describe_host,
};
pub use fetch::{FetchContext, FetchedList, fetch_list};
pub use find::{
    find_campaign_file, find_campaigns_near_text, find_later_run, find_latest_of_file, find_run, find_run_in_doubt,
    find_stored_run, is_folder_gone, list_campaign_files, lock_campaign, report_results_conflict,
};
pub use guard::{
    CancelledRecipients, EarlierSending, SentRecipients, find_opted_out_numbers, find_sent_recipients,
    list_campaign_runs, list_edition_runs,
};
pub use held_run::{Cancellation, CancelledRun, HeldRun, ReleasedRun, cancel_run, stop_run};
pub use inputs::{Inputs, read_api_key};
pub use launch::{
    ConfirmedRetry, EndedRun, Launch, NothingLeft, RetryScope, Round, RunOutcome, RunRequest, SelectionNotes,
};
pub use ledger_health::{
    BackupRefusal, CheckedLedger, LedgerProblem, RestoredLedger, accept_restored_ledger, check_ledger,
    find_unfamiliar_ledger_warning, refuse_lost_ledger,
};
pub use list::{CampaignList, EarlierCountries, ListSurvey, RestOfRun, Sample, survey_list};
pub use occurrence::{
    PendingOccurrence, PendingState, SkipRecord, SkippedOccurrence, find_occurrence, find_occurrence_list_path,
    find_run_deadline, find_schedule, find_schedule_damage, find_schedule_problems, find_unfinished_run,
    fire_occurrence, handled_until, has_same_text, list_recent_occurrences, load_occurrence, load_schedule,
    occurrence_key, recorded_occurrence,
};
pub use opt_outs::{
    CampaignRegions, ImportedEntries, MixedColumn, OptOutFile, OptOutTerms, add_opt_out, find_campaign_regions,
    list_opt_outs, list_other_campaigns, read_numbers, remove_opt_outs,
};
pub use plan::{
    CreatedPlan, MAX_APPROVAL_WAIT, PendingRequest, PlanContent, PlanFigures, PlanOptions, PlanReview, PlannedCampaign,
    PrivateKey, StandingApproval, TestRecipients, WeakerRule, approve_pending_request, approve_plan, count_approvals,
    create_plan, find_occurrence_plan, find_pending_request, find_weaker_rules, record_rule, return_approval,
    review_plan, short_digest, store_pending_request, use_approval,
};
pub use policy::{HeldRecipient, PolicyRefusal, describe_closed_window, find_closed_window};
pub use ports::{
    AccountView, Adapters, Connect, Consent, ConsentRefusal, NameView, PipedInput, Proposal, ProposalKind, RunEvent,
    RunObserver, run_blocking,
};
pub use profiles::{
    Connection, OptOutErrors, ProfileHooks, Profiles, check_host, has_other_secret, load_all_hooks, load_hook,
    read_destination_key, refuse_other_secret, store_secret_check_values,
};
pub use receipts::{WebhookPath, WebhookReceiver, WebhookRefusal};
pub use reconcile::{Polling, ReconciledRun, poll_run, reconcile_run, wants_receipts};
pub use resolve::{DoubtDecision, Resolution, ResolvedRun, RowChoice, current_person, is_known_author, resolve_doubts};
pub use results::{ProtectedFiles, StaleResults, update_results_until_shutdown};
pub use resume::open_copies;
pub use retry_rows::{
    DEFAULT_RETRY_STATES, RetriedError, RetryPreview, SkippedRetries, preview_retry, send_confirmed_retry,
};
pub use schedule::{
    ConfirmedActivation, ScheduleActivation, ScheduleChange, ScheduleOrder, ScheduleStatus, ScheduleView,
    apply_schedule_order, load_active_campaign, load_schedule_views,
};
pub use single::{ConfirmedOperation, EndedOperation, INTAKE_TIMEOUT, SingleMessage, SingleOperation};
pub use test_messages::{
    AdmittedTests, RequestedTest, TestMessage, TestOrder, TestRow, load_test_message, preview_requested_test,
    send_requested_test,
};
pub use worker::{Worker, WorkerEvent, WorkerObserver};
