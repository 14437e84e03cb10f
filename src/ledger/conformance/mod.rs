//! What every ledger promises, through its port: one suite, and each adapter goes through all of it.
//!
//! A new adapter gets a line in `promises`, a factory here, and nothing else.

mod blocks;
mod bounds;
mod caps;
#[expect(dead_code, reason = "the stories also end it, and put it back")]
#[path = "../../../tests/support/cluster.rs"]
pub(in crate::ledger) mod cluster;
mod copies;
mod envelopes;
mod events;
mod forgetting;
mod guard;
mod notifications;
mod plans;
mod receipts;
mod repeats;
mod runs;
pub(in crate::ledger) mod scene;
mod schedules;
mod shares;
mod suppression;

use jiff::Timestamp;
use tempfile::TempDir;

use self::cluster::Cluster;
use self::scene::Scene;
use super::memory::{Contents, MemoryLedger};
use super::postgres::{PostgresAddress, PostgresLedger};
use super::sqlite::SqliteLedger;

/// A new ledger in memory; it needs no folder.
async fn memory(_: &TempDir) -> Option<MemoryLedger> {
    Some(MemoryLedger::new(Contents::default(), Timestamp::now))
}

/// A new ledger in a file of this folder.
async fn sqlite(folder: &TempDir) -> Option<SqliteLedger> {
    Some(SqliteLedger::open(&folder.path().join("ledger"), Timestamp::now).await.expect("a ledger"))
}

/// A new ledger in a database of a server of its own; nothing where no server can be started.
async fn postgres(folder: &TempDir) -> Option<PostgresLedger> {
    let address = PostgresAddress::parse(&Cluster::shared()?.database()).expect("an address");
    Some(PostgresLedger::open(&address, folder.path()).await.expect("a ledger"))
}

/// The same with the tables of the version before, as long as not all machines have this one.
async fn postgres_of_the_version_before(folder: &TempDir) -> Option<PostgresLedger> {
    let address = PostgresAddress::parse(&Cluster::shared()?.database()).expect("an address");
    Some(PostgresLedger::open_of_the_version_before(&address, folder.path()).await.expect("a ledger"))
}

/// Has each adapter keep each promise, as a test of its own.
macro_rules! promises {
    ($($file:ident: $($promise:ident),+;)+) => {
        promises!(@ memory_keeps, memory; $($($file $promise)+)+);
        promises!(@ sqlite_keeps, sqlite; $($($file $promise)+)+);
        promises!(@ postgres_keeps, postgres; $($($file $promise)+)+);
        promises!(@ postgres_of_the_version_before_keeps, postgres_of_the_version_before; $($($file $promise)+)+);
    };
    (@ $name:ident, $adapter:ident; $($file:ident $promise:ident)+) => {
        mod $name {
            $(
                // The lists of some ledgers are written and read by threads that wait for others.
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $promise() {
                    let folder = tempfile::tempdir().expect("a folder");
                    if let Some(ledger) = super::$adapter(&folder).await {
                        super::$file::$promise(super::Scene::on(ledger).await).await;
                    }
                }
            )+
        }
    };
}

promises! {
    runs:
        a_campaign_on_an_account_is_held_by_one_at_a_time_until_it_is_dropped,
        a_run_is_taken_only_by_who_holds_its_campaign_on_its_account,
        a_request_to_stop_outlives_the_taking_of_a_run_until_it_is_taken_back,
        runs_are_numbered_and_their_identifiers_never_overlap,
        a_run_reads_back_as_it_was_written,
        runs_are_found_by_what_is_wanted_of_them_oldest_first,
        a_run_that_takes_the_place_of_another_ends_it_as_it_is,
        runs_are_of_the_file_that_they_were_moved_to,
        taking_a_run_forgets_what_its_last_end_said,
        an_identifier_leads_to_the_run_and_the_row_that_it_was_given_to,
        a_profile_keeps_the_host_of_its_first_use_until_another_is_trusted,
        a_profile_keeps_loopback_from_its_first_run_on,
        approval_rules_are_kept_in_their_order;
    copies:
        copies_come_back_byte_for_byte_as_often_as_they_are_opened,
        a_run_that_was_not_frozen_has_no_copies_and_that_says_where,
        nothing_is_left_of_a_start_that_never_began_and_nobody_elses_are_touched,
        copies_of_runs_that_the_ledger_does_not_have_are_told_until_they_are_put_aside,
        a_run_has_its_own_copies_although_another_ledger_left_some_under_its_name,
        copies_take_the_place_of_others_as_often_as_wanted;
    envelopes:
        an_intent_needs_the_lease_and_no_request_to_stop,
        taking_a_run_turns_what_was_begun_into_doubt_and_shuts_out_who_had_it,
        a_late_answer_is_evidence_and_late_proof_of_nothing_sent_is_not,
        an_answer_that_comes_after_the_end_of_a_run_is_counted,
        the_body_of_an_answer_is_kept_until_a_later_one_has_another,
        a_rated_account_makes_the_next_envelope_wait_whoever_sends_it,
        questions_leave_the_rate_of_an_account_to_its_messages,
        what_would_leave_too_late_by_its_slot_is_not_recorded_and_takes_none,
        a_walk_meets_every_envelope_once_and_in_order,
        every_envelope_has_a_number_of_its_own_whoever_begins_it,
        an_envelope_keeps_the_kind_of_its_operations,
        channels_of_pipelines_are_recorded_row_by_row,
        what_is_begun_and_settled_at_once_comes_to_what_it_comes_to_one_after_another;
    blocks:
        processes_draw_rows_of_one_run_and_no_row_twice,
        an_identifier_of_a_block_is_its_rows_alone_and_leads_back_to_it,
        a_shared_run_is_listed_and_over_in_what_nobody_has,
        a_full_shared_run_is_followed_by_the_next,
        a_process_that_ends_leaves_doubt_in_its_block_alone,
        nobody_begins_a_row_outside_the_own_block,
        who_takes_a_shared_run_to_decide_leaves_the_living_alone,
        shared_runs_of_another_edition_are_other_runs,
        an_identifier_that_somebody_brings_is_given_to_one_message,
        no_more_rows_are_drawn_within_an_hour_than_are_allowed,
        who_opted_out_gets_no_single_message_that_is_marketing;
    repeats:
        message_is_sent_once_until_its_place_is_given_back,
        one_of_many_takes_the_place_of_a_message;
    shares:
        shares_are_drawn_one_after_another_and_no_row_twice,
        until_the_gateway_took_a_message_one_process_alone_draws,
        what_somebody_had_who_is_gone_is_taken_over_with_doubt_about_what_was_begun,
        who_comes_to_the_place_of_somebody_who_is_gone_takes_over_what_was_drawn_there,
        nobody_begins_what_is_not_of_one_share_of_its_own,
        who_knows_an_earlier_sharing_out_draws_nothing_and_keeps_what_it_has,
        what_nobody_has_is_drawn_anew_when_a_run_is_shared_out_again,
        who_stops_a_run_tells_everybody_why_and_nothing_more_is_drawn,
        who_has_what_of_a_run_is_told_as_long_as_they_are_there;
    events:
        events_need_the_lease_and_come_back_in_their_order,
        a_run_with_something_to_send_again_is_open,
        an_order_to_send_again_has_identifiers_that_nothing_else_has,
        questions_are_kept_by_row;
    receipts:
        receipts_come_back_by_row_as_they_came_and_none_twice,
        every_opt_out_is_recorded_even_if_its_receipt_is_not_stored,
        last_answers_and_other_words_for_channels_are_kept,
        a_receipt_needs_no_lease_and_makes_what_was_counted_old_until_it_is_counted_anew,
        what_is_kept_of_a_runs_rows_is_what_was_kept_last,
        a_receipt_that_comes_before_the_answer_wins_over_doubt,
        an_answer_that_comes_after_the_end_is_counted_with_the_receipts,
        whoever_a_receipt_proves_to_have_a_message_is_guarded;
    notifications:
        what_is_taken_is_nobody_elses_and_comes_back_until_it_was_told,
        what_belongs_together_is_taken_together_and_not_soon_after_it_was_told,
        an_end_is_kept_with_who_is_told_of_it_or_not_at_all;
    schedules:
        what_is_armed_is_kept_paused_resumed_and_forgotten_by_its_name,
        an_occurrence_fires_at_most_once_whatever_becomes_of_its_run_and_its_schedule,
        an_occurrence_that_was_left_out_never_fires,
        an_occurrence_whose_run_was_never_opened_may_fire_again,
        an_occurrence_is_given_up_if_its_run_was_never_opened_and_else_not,
        the_last_occurrences_until_a_moment_are_told;
    plans:
        a_plan_is_found_by_the_beginning_of_its_digest_for_thirty_days,
        one_approval_is_good_for_one_use_whoever_comes_together,
        an_approval_is_good_until_its_time_and_a_standing_one_as_often_as_wanted,
        a_run_is_opened_with_its_approval_or_not_at_all;
    bounds:
        an_intent_that_would_go_over_a_budget_is_not_recorded_and_tells_how_much_fits,
        what_was_refused_or_not_sent_is_given_back_and_doubt_is_not,
        all_runs_of_an_edition_use_one_budget_whoever_sends_them,
        a_budget_is_kept_by_whoever_takes_a_run_next,
        so_many_messages_of_an_edition_leave_on_a_day,
        what_would_leave_tomorrow_is_none_of_today;
    caps:
        who_got_as_many_messages_as_a_cap_allows_is_left_out_of_every_campaign,
        what_did_not_go_out_counts_for_no_cap_and_doubt_does,
        only_campaigns_to_people_count_and_those_on_loopback_for_such_gateways_alone,
        what_went_to_who_was_forgotten_since_counts_for_caps_as_before,
        messages_of_assistants_count_towards_caps_and_tests_do_not;
    guard:
        the_guard_knows_every_number_that_may_have_a_message,
        the_guard_knows_what_was_learnt_and_decided,
        the_guard_knows_what_came_late_and_of_all_runs_that_are_asked_about,
        an_order_to_send_again_leaves_the_guard_as_it_was_until_the_message_went_out;
    suppression:
        who_is_on_the_list_is_told_once_with_why_whence_and_since_when,
        a_number_that_is_twice_among_those_added_is_on_the_list_once,
        who_was_taken_off_may_come_back_and_each_change_raises_the_version,
        an_opt_out_of_their_own_replaces_an_imported_one,
        removed_entries_are_those_that_stand_as_they_were_read,
        numbers_are_held_back_by_campaign_and_gateway,
        an_opt_out_before_an_intent_leaves_its_row_out_whatever_was_rendered,
        rows_are_left_out_for_a_reason_by_whoever_has_the_run,
        a_run_is_held_back_by_what_it_heeds_alone,
        a_run_planned_with_the_list_as_it_is_asks_nobody_again,
        who_opts_out_between_two_attempts_is_skipped_and_what_was_in_doubt_stays_so;
    forgetting:
        a_forgotten_number_is_in_no_record_and_the_rows_beside_it_are_as_they_were,
        who_was_forgotten_is_guarded_and_held_back_by_what_stays_of_the_number,
        who_opted_out_before_stays_on_the_list_by_what_stays_of_the_number,
        what_was_planned_for_who_is_forgotten_is_left_out_once,
        rows_wait_to_leave_copies_until_somebody_says_that_they_did,
        of_a_purged_run_nothing_of_its_rows_is_left_and_what_it_came_to_stays,
        who_has_a_message_of_a_purged_run_is_guarded_and_counted_as_before,
        numbers_cancelled_in_a_purged_run_are_known_by_a_hash,
        nothing_is_purged_that_somebody_has_or_of_which_more_became_known,
        nobody_takes_a_purged_run_or_draws_rows_of_it;
}
