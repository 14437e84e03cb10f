//! The conformance suite of the ledger's port. Every adapter must pass all of it.
//!
//! A new adapter needs a line in `promises` and a factory here.

mod blocks;
mod bounds;
mod caps;
#[expect(dead_code, reason = "only the stories stop and restore the cluster")]
#[path = "../../../../tests/support/cluster.rs"]
pub(crate) mod cluster;
mod copies;
mod envelopes;
mod forgetting;
mod guard;
mod notifications;
mod plans;
mod receipts;
mod runs;
pub(crate) mod scene;
mod schedules;
mod shards;
mod suppression;

use std::sync::Arc;

use jiff::Timestamp;
use tempfile::TempDir;

use self::cluster::Cluster;
use self::scene::Scene;
use super::Ledger;
use super::memory::{LedgerContents, MemoryLedger};
use super::postgres::{PostgresAddress, PostgresLedger};
use super::sqlite::SqliteLedger;

/// A new ledger in memory, which needs no folder.
async fn memory(_: &TempDir) -> Option<Arc<dyn Ledger>> {
    Some(Arc::new(MemoryLedger::new(LedgerContents::default(), Timestamp::now)))
}

/// A new SQLite ledger in this folder.
async fn sqlite(folder: &TempDir) -> Option<Arc<dyn Ledger>> {
    Some(Arc::new(SqliteLedger::open(&folder.path().join("ledger"), Timestamp::now).await.expect("a ledger")))
}

/// A new ledger in a database of a separate server. `None` if no server can be started.
async fn postgres(folder: &TempDir) -> Option<Arc<dyn Ledger>> {
    let address = PostgresAddress::parse(&Cluster::shared()?.create_database()).expect("an address");
    Some(Arc::new(PostgresLedger::open(&address, folder.path()).await.expect("a ledger")))
}

/// A new PostgreSQL ledger with the tables of the previous version, which some machines might still use.
async fn postgres_with_previous_tables(folder: &TempDir) -> Option<Arc<dyn Ledger>> {
    let address = PostgresAddress::parse(&Cluster::shared()?.create_database()).expect("an address");
    Some(Arc::new(PostgresLedger::open_previous_version(&address, folder.path()).await.expect("a ledger")))
}

/// Runs each promise as a separate test for each adapter.
macro_rules! promises {
    ($($file:ident: $($promise:ident),+;)+) => {
        promises!(@ memory_keeps, memory; $($($file $promise)+)+);
        promises!(@ sqlite_keeps, sqlite; $($($file $promise)+)+);
        promises!(@ postgres_keeps, postgres; $($($file $promise)+)+);
        promises!(@ postgres_with_previous_tables_keeps, postgres_with_previous_tables; $($($file $promise)+)+);
    };
    (@ $name:ident, $adapter:ident; $($file:ident $promise:ident)+) => {
        mod $name {
            $(
                // Some ledgers write and read lists on blocking threads.
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $promise() {
                    let folder = tempfile::tempdir().expect("a folder");
                    if let Some(ledger) = super::$adapter(&folder).await {
                        super::$file::$promise(super::Scene::new(ledger).await).await;
                    }
                }
            )+
        }
    };
}

promises! {
    runs:
        campaign_lock_has_one_owner_until_it_is_dropped,
        run_cannot_be_claimed_without_its_campaign_lock,
        stop_request_outlives_a_claim_until_withdrawn,
        runs_are_numbered_and_their_identifiers_never_overlap,
        run_reads_back_as_written,
        runs_are_filtered_and_listed_oldest_first,
        replacement_run_ends_the_replaced_run,
        run_follows_its_campaign_file_to_a_new_path,
        claim_clears_the_previous_end_of_a_run,
        message_identifier_leads_to_its_run_and_row,
        profile_keeps_its_first_host_until_another_is_trusted,
        profile_keeps_loopback_from_its_first_run,
        approval_rules_keep_their_order;
    copies:
        copies_read_back_byte_for_byte_each_time,
        missing_copies_are_reported_with_their_location,
        abandoned_start_leaves_only_the_copies_of_others,
        stray_copies_are_listed_until_set_aside,
        run_has_its_own_copies_despite_strays_with_its_name,
        copies_can_be_replaced_repeatedly;
    envelopes:
        intent_needs_the_lease_and_no_stop_request,
        claim_puts_open_envelopes_in_doubt_and_ends_the_lease,
        late_answer_counts_unless_it_proves_nothing_was_sent,
        answer_after_the_end_of_a_run_is_counted,
        answer_body_is_kept_until_a_later_answer_has_one,
        rate_limit_delays_the_next_envelope_of_any_sender,
        inquiries_get_a_tenth_of_the_rate_while_messages_are_sent,
        late_envelope_is_not_recorded_and_takes_no_slot,
        envelope_reader_returns_each_envelope_once_in_order,
        envelope_numbers_are_unique_across_senders,
        envelope_keeps_its_operation_kind,
        pipeline_channels_are_recorded_by_row,
        concurrent_envelopes_match_sequential_envelopes;
    blocks:
        processes_never_draw_the_same_row_of_a_shared_run,
        block_identifiers_are_unique_and_lead_back_to_their_rows,
        shared_run_is_listed_as_finished_and_claims_end_on_drop,
        full_shared_run_is_followed_by_a_new_one,
        ended_process_leaves_only_its_block_in_doubt,
        envelope_outside_its_block_is_refused,
        claim_of_a_shared_run_keeps_blocks_in_use,
        shared_runs_differ_by_edition,
        given_identifier_is_used_for_one_message,
        hourly_limit_bounds_drawn_rows,
        single_marketing_message_is_refused_after_an_opt_out;
    shards:
        shards_are_drawn_in_order_without_repeating_rows,
        one_worker_draws_until_the_gateway_accepts_a_message,
        shards_of_a_lost_worker_are_taken_over,
        worker_at_a_free_place_takes_over_its_shards,
        envelope_must_lie_within_one_shard_of_its_worker,
        worker_of_an_earlier_sharding_keeps_shards_but_draws_none,
        unclaimed_rows_are_drawn_again_after_resharding,
        halted_run_has_a_reason_and_no_more_shards,
        worker_skips_only_rows_of_its_own_shards,
        shard_holders_are_listed_while_they_are_alive;
    receipts:
        receipts_are_kept_by_row_in_order_without_duplicates,
        opt_out_is_recorded_even_if_its_receipt_is_not_stored,
        last_answers_and_unknown_channel_names_are_kept,
        receipt_needs_no_lease_and_outdates_the_counts,
        latest_figures_of_a_run_are_loaded,
        receipt_before_the_answer_overrides_doubt,
        answer_after_the_end_is_counted_with_the_receipts,
        number_with_a_delivery_receipt_is_guarded,
        events_need_the_lease_and_keep_their_order,
        run_with_rows_to_send_again_is_open,
        retry_order_has_unique_identifiers,
        manual_decision_ends_the_skip_of_its_rows,
        inquiries_are_kept_by_row;
    notifications:
        taken_notification_returns_until_it_is_given_up,
        related_notifications_are_taken_together_and_spaced,
        run_end_and_its_notifications_are_one_commit;
    schedules:
        schedule_is_kept_paused_resumed_and_removed_by_name,
        occurrence_fires_at_most_once,
        skipped_occurrence_never_fires,
        occurrence_with_an_unopened_run_may_fire_again,
        only_an_occurrence_with_an_unopened_run_is_abandoned,
        latest_occurrences_are_listed_up_to_a_moment;
    plans:
        plan_is_found_by_digest_prefix_for_thirty_days,
        approval_is_used_once_by_concurrent_callers,
        standing_approval_is_reusable_until_it_expires,
        run_is_opened_together_with_its_approval;
    bounds:
        over_budget_intent_is_refused_with_the_number_that_fits,
        budget_refunds_rejected_rows_but_not_rows_in_doubt,
        runs_of_an_edition_share_one_budget,
        budget_holds_after_a_claim,
        budget_counts_messages_that_receipts_prove,
        daily_limit_counts_messages_that_receipts_prove,
        daily_limit_bounds_the_messages_of_an_edition,
        message_that_would_be_sent_tomorrow_is_refused,
        row_outside_the_allowed_countries_is_skipped;
    caps:
        capped_number_is_skipped_in_every_campaign,
        cap_counts_messages_in_doubt_but_not_unsent_ones,
        cap_ignores_only_the_attempt_that_a_row_repeats,
        cap_counts_messages_that_receipts_prove,
        cap_counts_a_resent_message_once,
        cap_counts_live_campaigns_and_loopback_separately,
        cap_counts_messages_to_a_forgotten_number,
        cap_counts_assistant_messages_but_not_tests;
    guard:
        guard_covers_every_number_that_might_have_a_message,
        guard_follows_events_and_decisions,
        guard_covers_late_answers_and_all_named_runs,
        retry_guards_its_row_from_the_intent_until_a_rejection,
        reservation_blocks_a_repeated_message_until_released,
        reservation_goes_to_one_of_many_callers;
    suppression:
        opt_out_is_listed_once_with_reason_source_and_time,
        number_added_twice_is_listed_once,
        removed_opt_out_can_return_and_changes_raise_the_version,
        opt_out_by_a_recipient_replaces_an_imported_one,
        only_unchanged_entries_are_removed,
        numbers_are_suppressed_by_campaign_and_gateway,
        opt_out_before_the_intent_skips_the_row,
        rows_are_skipped_with_a_reason_by_the_lease_holder,
        policy_of_a_run_decides_which_opt_outs_apply,
        scope_of_an_opt_out_decides_which_purpose_it_covers,
        reply_opts_out_of_all_messages_if_the_tables_allow_it,
        reply_ends_earlier_opt_outs_from_the_message_it_answers,
        late_opt_in_keeps_the_latest_opt_out,
        removing_an_opt_out_removes_its_repetitions,
        reply_repeated_after_an_opt_in_is_not_recorded,
        repeated_receipt_is_not_a_new_wish,
        run_with_the_current_list_version_is_not_checked_again,
        opt_out_between_attempts_skips_the_row_and_keeps_doubt;
    forgetting:
        forgetting_erases_only_the_forgotten_number_everywhere,
        forgotten_number_is_guarded_and_suppressed_by_its_hash,
        forgotten_number_stays_on_the_list_as_a_hash,
        number_is_erased_from_texts_that_mention_it,
        number_is_erased_from_a_repeated_opt_out,
        planned_rows_of_a_forgotten_number_are_skipped_once,
        forgotten_rows_are_listed_until_their_removal_is_recorded,
        evidence_of_consent_is_kept_by_row_until_forgotten,
        evidence_of_consent_is_purged_with_its_run,
        purged_run_keeps_its_counts_but_no_rows,
        numbers_of_a_purged_run_stay_guarded_and_capped,
        cancelled_numbers_of_a_purged_run_are_kept_as_hashes,
        forgotten_number_stays_cancelled_and_known_by_its_row,
        claimed_or_changed_run_is_not_purged,
        purged_run_cannot_be_claimed_or_drawn_from;
}
