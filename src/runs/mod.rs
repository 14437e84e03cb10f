//! What a run does, for every surface: a [`Request`] goes in, a [`Consent`] is asked, an [`Observer`] hears events, and an
//! outcome or an [`Error`] comes out.
//!
//! Errors have their messages in plain English. Commands to suggest, exit codes, terminals, signals and the choice of adapters
//! belong to the surfaces; what they choose comes in as [`Adapters`].

mod account;
mod adapters;
mod admit_tests;
mod arm;
mod armed;
mod armed_view;
mod begin;
mod blocking;
mod campaign_files;
mod campaign_regions;
mod check_campaign;
mod check_ledger;
mod claim;
mod collector;
mod connection;
mod consent;
mod decoded_list;
mod digest;
mod dry_run;
mod end;
mod error;
mod event;
mod exclude;
mod fetch;
mod find;
mod fire;
mod forget;
mod forgotten;
mod freeze;
mod freshen;
mod guard;
mod held_run;
mod hooks;
mod hours;
mod inputs;
mod launch;
mod leave_out;
mod list;
mod list_changes;
mod list_survey;
mod listed;
mod lost;
mod new_gateway;
mod online;
mod opt_out_date;
mod opt_out_file;
mod other_problems;
mod outcome;
mod plan;
mod policy;
mod poll;
mod profiles;
mod purge;
mod question_queue;
mod receive;
mod reconcile;
mod reconcile_run;
mod rehearsed;
mod request;
mod resolve;
mod restore;
mod resume;
mod retry;
mod row_choice;
mod samples;
mod schedule_damage;
mod schedule_refusal;
mod send;
mod sender;
mod sent_rows;
mod shared;
mod single;
mod skip_record;
mod start;
mod stop;
mod suppress;
mod suppress_files;
mod tables;
mod target;
mod templates;
mod test_message;
#[cfg(test)]
mod tests;
mod unfamiliar;
mod whose;
mod worker;

pub use account::{GatewayAccount, KeylessAccount};
pub use adapters::{AccountView, Adapters, Connect, NameView, PipedInput};
pub use admit_tests::{AdmittedTests, TestOrder};
pub use arm::{ScheduleActivation, ScheduleOrder, apply_schedule_order};
pub use armed::{ScheduleChange, load_active_campaign};
pub use armed_view::{ScheduleStatus, ScheduleView, load_schedule_views};
pub use blocking::run_blocking;
pub use campaign_files::list_campaign_files;
pub use campaign_regions::{CampaignRegions, find_campaign_regions};
pub use check_campaign::{CheckedCampaign, check_campaign};
pub use check_ledger::{CheckedLedger, LedgerProblem, check_ledger};
pub use claim::{current_person, hold_campaign, is_known_author};
pub use collector::{ReceiptCollector, create_collector};
pub use connection::{Connection, read_destination_key};
pub use consent::{Consent, ConsentRefusal, Proposal, ProposalKind};
pub use dry_run::{DryRun, dry_run};
pub use error::{
    ChangedInputs, DecisionRefusal, EarlierEdition, Error, InputChanges, RetryRefusal, RunPhase, TemplateRefusal,
    describe_host,
};
pub use event::{RunEvent, RunObserver};
pub use fetch::{FetchContext, FetchedList, fetch_list};
pub use find::{
    find_doubtful_run, find_later_run, find_latest_of_file, find_run, find_stored_run, report_results_conflict,
};
pub use fire::{
    check_schedule, find_occurrence, find_unfinished_run, fire_occurrence, has_same_text, load_occurrence,
    load_schedule, occurrence_key, occurrence_list_path, recorded_occurrence,
};
pub use forget::{ForgottenPerson, ForgottenRows, forget_person};
pub use freeze::open_copies;
pub use freshen::{list_stale_runs, refresh_run};
pub use guard::{
    CancelledRecipients, EarlierSending, SentRecipients, find_capped, find_opted_out, find_sent_recipients,
    list_campaign_runs, list_edition_runs, message_caps,
};
pub use held_run::{HeldRun, ReleasedRun, StaleResults};
pub use hooks::{ProfileHooks, has_other_secret, load_all_hooks, load_hook, refuse_other_secret, store_hook_secrets};
pub use inputs::{Inputs, read_api_key};
pub use launch::{Launch, RetryScope};
pub use list::CampaignList;
pub use list_survey::{ListSurvey, survey_list};
pub use new_gateway::{NewAccount, add_gateway};
pub use online::{OnlineAnswer, ask_online};
pub use opt_out_file::{MixedColumn, OptOutFile, read_numbers};
pub use outcome::{EndedRun, NothingLeft, RunOutcome};
pub use plan::{
    CreatedPlan, PendingRequest, PlanContent, PlanFigures, PlanOptions, PlanRefusal, PlanReview, PlannedCampaign,
    PrivateKey, StandingApproval, TestRecipients, WeakerRule, approve_pending, approve_plan, count_approvals,
    create_plan, find_occurrence_plan, find_pending, find_weaker_rules, record_rule, return_approval, review_plan,
    short_digest, store_pending, use_approval,
};
pub use policy::{HeldRecipient, PolicyRefusal, describe_closed_window, find_closed_window};
pub use poll::{Polling, poll_run, wants_receipts};
pub use profiles::{Profiles, check_host};
pub use purge::{OldRuns, PurgeBlocker, purge_runs};
pub use receive::{WebhookPath, WebhookReceiver, WebhookRefusal};
pub use reconcile_run::{ReconciledRun, reconcile_run};
pub use request::{Round, RunRequest};
pub use resolve::{DoubtDecision, Resolution, ResolvedRun, resolve_doubts};
pub use restore::{BackupRefusal, RestoredLedger, accept_restored_ledger};
pub use retry::{RetriedError, RetryLeftOut};
pub use row_choice::RowChoice;
pub use samples::{RestOfRun, Sample};
pub use schedule_damage::{find_schedule, find_schedule_damage, list_recent_occurrences};
pub use schedule_refusal::ScheduleRefusal;
pub use single::{ConfirmedSingle, EndedSingle, INTAKE_TIMEOUT, SingleMessage, SingleOperation};
pub use skip_record::{SkipRecord, SkippedOccurrence};
use start::refuse_start;
pub use stop::{Cancellation, CancelledRun, cancel_run, stop_run};
pub use suppress::{ImportedEntries, OptOutTerms, add_opt_out, list_opt_outs, list_other_campaigns, remove_opt_outs};
pub use target::ProtectedFiles;
pub use templates::TemplateChange;
pub use test_message::{TestMessage, load_test_message};
pub use unfamiliar::unfamiliar_ledger_warning;
pub use whose::{find_campaign_file, is_folder_gone};
pub use worker::{Worker, WorkerEvent, WorkerObserver};
