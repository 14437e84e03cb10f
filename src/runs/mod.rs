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

pub use account::{Account, KeylessAccount};
pub use adapters::{AccountView, Adapters, Connect, NameView, PipedInput};
pub use admit_tests::{AdmittedTests, TestOrder};
pub use arm::{Arming, ScheduleOrder, change_armed};
pub use armed::{ArmedChange, armed_campaign};
pub use armed_view::{ArmedState, ArmedView, armed_views};
pub use blocking::blocking;
pub use campaign_files::campaign_files;
pub use campaign_regions::{CampaignRegions, campaign_regions};
pub use check_campaign::{CheckedCampaign, check_campaign};
pub use check_ledger::{CheckedLedger, LedgerProblem, check_ledger};
pub use claim::{hold, is_known, person};
pub use collector::{Collector, collector};
pub use connection::{Connection, key};
pub use consent::{Consent, Proposal, ProposalKind, Refusal};
pub use dry_run::{DryRun, dry_run};
pub use error::{
    ChangedInputs, DecisionRefusal, EarlierEdition, Error, InputChanges, RetryRefusal, RunPhase, TemplateRefusal,
    host_place,
};
pub use event::{Event, Observer};
pub use fetch::{FetchedList, Fetching, fetch};
pub use find::{find, find_doubtful, find_stored, judge_results, later_at, latest_of_file};
pub use fire::{
    findings_of_armed, fire, list_of, load_occurrence, look_at_armed, occurrence_key, occurrence_of,
    recorded_occurrence, says_the_same, unfinished_of,
};
pub use forget::{ForgottenPerson, ForgottenRows, forget};
pub use freeze::thaw;
pub use freshen::{freshen, stale_runs};
pub use guard::{CancelledBefore, SentAlready, SentBefore, already_sent, capped, caps, edition_of, opted_out, runs_of};
pub use held_run::{HeldRun, ReleasedRun, StaleResults};
pub use hooks::{FoundHooks, all_hooks, has_other_secret, hook_of, keep_secrets, refuse_other_secret};
pub use inputs::{Inputs, key_of};
pub use launch::{Launch, RetryScope};
pub use list::List;
pub use list_survey::{ListSurvey, survey_list};
pub use new_gateway::{NewAccount, add_gateway};
pub use online::{OnlineAnswer, ask_online};
pub use opt_out_file::{MixedColumn, OptOutFile, numbers_in};
pub use outcome::{EndedRun, NothingLeft, Outcome};
pub use plan::{
    Approving, MadePlan, Pending, PlanFigures, PlanOf, PlanOptions, PlanRefusal, PlannedCampaign, PrivateKey, Standing,
    TestRecipients, WeakerRule, approvals_given, approve, approve_pending, find_pending, give_approval_back,
    keep_pending, look_at_plan, plan, planned_occurrence, record_rule, short, use_approval, weaker_rules,
};
pub use policy::{HeldRecipient, PolicyRefusal, describe_closed_window, held_by_windows};
pub use poll::{Polling, poll, wants_receipts};
pub use profiles::{Profiles, check_host};
pub use purge::{KeptRun, OldRuns, purge};
pub use receive::{Post, Receiver, Refused};
pub use reconcile_run::{ReconciledRun, reconcile};
pub use request::{Request, Round};
pub use resolve::{Decision, Resolution, ResolvedRun, resolve};
pub use restore::{BackupRefusal, RestoredLedger, restore};
pub use retry::{RetriedError, RetryLeftOut};
pub use row_choice::RowChoice;
pub use samples::{RestOfRun, Sample};
pub use schedule_damage::{find_schedule, recent_occurrences, schedule_damage};
pub use schedule_refusal::ScheduleRefusal;
pub use single::{ConfirmedSingle, EndedSingle, INTAKE, Single, SingleMessage};
pub use skip_record::{SkipRecord, SkippedOccurrence};
use start::refuse_start;
pub use stop::{Cancellation, CancelledRun, stop, stop_for_good};
pub use suppress::{ImportedEntries, OptOutTerms, opt_outs_of, other_campaigns, suppress, unsuppress};
pub use target::OwnFiles;
pub use templates::TemplateChange;
pub use test_message::{TestMessage, test_message};
pub use unfamiliar::unfamiliar_ledger_warning;
pub use whose::{campaign_file, is_gone};
pub use worker::{WorkEvent, WorkObserver, Worker};
