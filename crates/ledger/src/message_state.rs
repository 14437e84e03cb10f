//! The state of one message, folded from its events and receipts. The functions are pure.
//!
//! A delivery on any channel wins over every failure, in any order and with any timestamps, because channels report
//! with different clocks. A failure is final only if it concerns the whole message (contract 6.2).

use super::{RowChange, RowState, StoredReceipt};
use campaign_core::domain::{Chain, DeliveryState, Endpoint, Receipt, ReceiptSource, Status};

/// The state of a message while its events and receipts are added in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageState {
    pub(super) state: RowState,
    /// The channels of the message, as sent.
    chain: Chain,
    /// The endpoint that the message was sent to.
    endpoint: Endpoint,
    /// The state before a retry, until something newer is known.
    pub(super) before_retry: Option<RowState>,
    /// Whether the message has any receipts.
    has_receipts: bool,
    /// Whether the message was rejected before any channel was tried.
    pub(super) refused_at_intake: bool,
}

impl MessageState {
    /// A message in this state, sent on these channels.
    pub(super) fn new(state: RowState, chain: Chain, endpoint: Endpoint) -> Self {
        Self { state, chain, endpoint, before_retry: None, has_receipts: false, refused_at_intake: false }
    }

    /// Adds an event's change. Returns whether the change applied.
    pub(super) fn add_change(&mut self, change: &RowChange) -> bool {
        let at_intake = match change {
            RowChange::Found { status, .. } => self.is_rejected_at_intake(&Status::from_name(status)),
            _ => false,
        };
        if !change.applies_to(self.state, self.chain) {
            return false;
        }
        self.before_retry = matches!(change, RowChange::Retry { .. }).then_some(self.state);
        self.state =
            if at_intake { RowState::Failed } else { change.resulting_state(self.chain).unwrap_or(self.state) };
        self.refused_at_intake = at_intake;
        true
    }

    /// Adds a receipt. Returns whether the receipt changed the state.
    pub(super) fn add_receipt(&mut self, stored: &StoredReceipt) -> bool {
        let delivery = self.effective_delivery_state(&stored.receipt);
        let at_intake = self.is_rejected_at_intake(&stored.receipt.status);
        // A report with another status disproves the rejection: the message was tried after all.
        self.refused_at_intake &= stored.receipt.status == Status::Rejected;
        self.has_receipts = true;
        let next = match delivery {
            DeliveryState::Pending => RowState::Accepted,
            DeliveryState::Delivered => RowState::Delivered,
            DeliveryState::Read => RowState::Read,
            DeliveryState::Failed => RowState::Failed,
        };
        let applies = match (self.state, delivery) {
            // The failure of the old message is the reason for the retry, so it does not change the state again. If a
            // person decided that nothing was sent, any receipt proves the opposite.
            (RowState::Planned, DeliveryState::Pending | DeliveryState::Failed)
                if let Some(before) = self.before_retry =>
            {
                before.can_become(next)
            }
            // Proof that a message was sent overrides every conclusion.
            (RowState::Planned, _) | (RowState::Sending, DeliveryState::Pending) => true,
            (RowState::Queued, DeliveryState::Pending) => false,
            _ => self.state.can_become(next),
        };
        if applies {
            (self.state, self.before_retry, self.refused_at_intake) = (next, None, at_intake);
        }
        applies
    }

    /// The delivery state that a receipt reports for the whole message.
    fn effective_delivery_state(&self, receipt: &Receipt) -> DeliveryState {
        match receipt.status.delivery_state() {
            DeliveryState::Failed if !self.is_final_failure(receipt) => DeliveryState::Pending,
            delivery => delivery,
        }
    }

    /// Whether a reported failure concerns the whole message, and not a channel with a fallback.
    fn is_final_failure(&self, receipt: &Receipt) -> bool {
        self.is_rejected_at_intake(&receipt.status)
            || receipt.source == ReceiptSource::AskedLast
            || self.chain.is_exhausted_by(receipt.channel.as_ref())
    }

    /// Whether the status rejects a queued message before any channel was tried (contract 6.5), even if the report
    /// names a channel.
    ///
    /// A message in doubt on the asynchronous endpoint was at most queued. On the synchronous endpoint, a rejection can
    /// concern only the first channel, while the next channel is still tried.
    fn is_rejected_at_intake(&self, status: &Status) -> bool {
        let was_queued = match self.state {
            RowState::Queued => true,
            RowState::Sending
            | RowState::InDoubt
            | RowState::Unresolved
            | RowState::AssumedSent
            | RowState::NotSent => self.endpoint == Endpoint::Async,
            _ => false,
        };
        was_queued && !self.has_receipts && *status == Status::Rejected
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use campaign_core::domain::{Channel, OperationKind, ReportedChannel};

    const VIBER_SMS: OperationKind = OperationKind::ViberSms;

    fn receipt(channel: &str, status: Status, second: i64) -> StoredReceipt {
        let at = Timestamp::from_second(second).unwrap();
        let receipt = Receipt {
            updated: Some(at),
            channel: ReportedChannel::parse(channel),
            ..Receipt::new(ReceiptSource::Webhook, status)
        };
        StoredReceipt { order: None, at, receipt }
    }

    /// The state of a message to the synchronous endpoint after these receipts.
    fn state_after(state: RowState, chain: impl Into<Chain>, receipts: &[StoredReceipt]) -> RowState {
        state_after_on_endpoint(Endpoint::Sync, state, chain, receipts)
    }

    fn state_after_on_endpoint(
        endpoint: Endpoint,
        state: RowState,
        chain: impl Into<Chain>,
        receipts: &[StoredReceipt],
    ) -> RowState {
        let mut message = MessageState::new(state, chain.into(), endpoint);
        for receipt in receipts {
            message.add_receipt(receipt);
        }
        message.state
    }

    fn statuses() -> impl Strategy<Value = Status> {
        let other = Just(Status::Other("PAUSED".into()));
        prop_oneof![proptest::sample::select(Status::KNOWN_STATUSES.to_vec()), other]
    }

    fn channels() -> impl Strategy<Value = &'static str> {
        proptest::sample::select(vec!["", "viber", "sms", "rcs", "MAX"])
    }

    fn receipts() -> impl Strategy<Value = Vec<StoredReceipt>> {
        let receipt =
            (channels(), statuses(), 0_i64..100).prop_map(|(channel, status, at)| receipt(channel, status, at));
        proptest::collection::vec(receipt, 0..8)
    }

    fn kinds() -> impl Strategy<Value = OperationKind> {
        proptest::sample::select(vec![
            OperationKind::Sms,
            VIBER_SMS,
            OperationKind::RcsViberSms,
            OperationKind::Pipeline,
        ])
    }

    proptest! {
        #[test]
        fn state_only_moves_forward_for_any_order_of_receipts(
            receipts in receipts(),
            kind in kinds(),
            state in proptest::sample::select(RowState::ALL.to_vec()),
        ) {
            let mut known = state;
            for end in 1..=receipts.len() {
                let next = state_after(state, kind, &receipts[..end]);
                let forward = next == known || match known {
                    RowState::Planned => next.is_guarded(),
                    RowState::Accepted | RowState::Queued => matches!(next, RowState::Delivered | RowState::Read | RowState::Failed),
                    RowState::Failed | RowState::Rejected => matches!(next, RowState::Delivered | RowState::Read),
                    RowState::Delivered => next == RowState::Read,
                    RowState::Sending | RowState::InDoubt | RowState::Unresolved | RowState::AssumedSent | RowState::NotSent =>
                        matches!(next, RowState::Accepted | RowState::Delivered | RowState::Read | RowState::Failed),
                    RowState::Skipped | RowState::Invalid | RowState::Read => false,
                };
                prop_assert!(forward, "{known} -> {next}");
                known = next;
            }
        }

        #[test]
        fn delivery_wins_over_failures_in_any_order(
            (receipts, shuffled) in receipts().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
            kind in kinds(),
        ) {
            let deliveries = receipts.iter().map(|stored| stored.receipt.status.delivery_state());
            let expected = deliveries.fold(None, |best, delivery| match (best, delivery) {
                (_, DeliveryState::Read) | (Some(RowState::Read), _) => Some(RowState::Read),
                (_, DeliveryState::Delivered) => Some(RowState::Delivered),
                (best, DeliveryState::Pending | DeliveryState::Failed) => best,
            });
            for receipts in [receipts, shuffled] {
                let state = state_after(RowState::Accepted, kind, &receipts);
                match expected {
                    Some(expected) => prop_assert_eq!(state, expected),
                    None => prop_assert!(matches!(state, RowState::Accepted | RowState::Failed)),
                }
            }
        }

        #[test]
        fn failure_is_final_only_if_it_ends_the_chain(receipts in receipts(), kind in kinds()) {
            let ends = |stored: &StoredReceipt| {
                let chain = Chain::from(kind);
                stored.receipt.status.is_failure() && chain.is_exhausted_by(stored.receipt.channel.as_ref())
            };
            let has_failed = state_after(RowState::Accepted, kind, &receipts) == RowState::Failed;
            prop_assert!(!has_failed || receipts.iter().any(ends));
        }
    }

    #[test]
    fn state_of_a_chain_follows_from_its_receipts() {
        use Status::{Accepted, Delivered, Expired, Queued, Read, Replied, Undeliverable};
        type Reported = (&'static str, Status, i64);
        let cases: [(&[Reported], RowState); 12] = [
            (&[("viber", Undeliverable, 5), ("sms", Delivered, 5)], RowState::Delivered),
            (&[("viber", Expired, 10), ("sms", Delivered, 9)], RowState::Delivered),
            (&[("viber", Expired, 50), ("viber", Delivered, 5)], RowState::Delivered),
            (&[("viber", Expired, 50), ("viber", Read, 5)], RowState::Read),
            (&[("viber", Expired, 50), ("viber", Replied, 5)], RowState::Read),
            (&[("viber", Expired, 2), ("sms", Read, 4), ("sms", Delivered, 3)], RowState::Read),
            (&[("viber", Expired, 2)], RowState::Accepted),
            (&[("viber", Expired, 2), ("sms", Accepted, 3)], RowState::Accepted),
            (&[("viber", Expired, 2), ("sms", Queued, 3)], RowState::Accepted),
            (&[("viber", Undeliverable, 2), ("sms", Undeliverable, 3)], RowState::Failed),
            (&[("sms", Undeliverable, 3)], RowState::Failed),
            (&[("sms", Undeliverable, 3), ("viber", Delivered, 1)], RowState::Delivered),
        ];
        for (reported, expected) in cases {
            let receipts: Vec<StoredReceipt> =
                reported.iter().map(|(channel, status, at)| receipt(channel, status.clone(), *at)).collect();
            assert_eq!(state_after(RowState::Accepted, VIBER_SMS, &receipts), expected, "{reported:?}");
            let queued = if expected == RowState::Accepted { RowState::Queued } else { expected };
            assert_eq!(state_after(RowState::Queued, VIBER_SMS, &receipts), queued, "{reported:?}, queued");
        }
    }

    #[test]
    fn failure_of_a_channel_outside_the_chain_is_not_final() {
        for (kind, channel, state) in [
            (OperationKind::Sms, "viber", RowState::Accepted),
            (OperationKind::Sms, "sms", RowState::Failed),
            (OperationKind::Sms, "", RowState::Failed),
            (VIBER_SMS, "rcs", RowState::Accepted),
            (VIBER_SMS, "MAX", RowState::Accepted),
            (VIBER_SMS, "", RowState::Failed),
            (OperationKind::Pipeline, "sms", RowState::Accepted),
            (OperationKind::Pipeline, "", RowState::Failed),
        ] {
            let reported = [receipt(channel, Status::Expired, 1)];
            assert_eq!(state_after(RowState::Accepted, kind, &reported), state, "{kind} {channel}");
        }
        let chain = Chain::from_channels([Channel::Telegram, Channel::Voice]);
        assert_eq!(state_after(RowState::Accepted, chain, &[receipt("voice", Status::Expired, 1)]), RowState::Failed);
    }

    #[test]
    fn first_rejection_of_a_queued_message_is_final_on_any_channel() {
        let rejected = receipt("viber", Status::Rejected, 1);
        let routing = receipt("viber", Status::Routing, 0);
        assert_eq!(state_after(RowState::Queued, VIBER_SMS, std::slice::from_ref(&rejected)), RowState::Failed);
        assert_eq!(state_after(RowState::Queued, VIBER_SMS, &[routing, rejected.clone()]), RowState::Queued);
        assert_eq!(state_after(RowState::Accepted, VIBER_SMS, &[rejected]), RowState::Accepted);
        assert_eq!(state_after(RowState::Queued, VIBER_SMS, &[receipt("viber", Status::Expired, 1)]), RowState::Queued);
    }

    #[test]
    fn rejection_of_a_queued_message_in_doubt_is_final() {
        for doubtful in
            [RowState::Sending, RowState::InDoubt, RowState::Unresolved, RowState::AssumedSent, RowState::NotSent]
        {
            for channel in ["viber", "viber+sms", "sms", ""] {
                let rejected = [receipt(channel, Status::Rejected, 1)];
                let state = state_after_on_endpoint(Endpoint::Async, doubtful, VIBER_SMS, &rejected);
                assert_eq!(state, RowState::Failed, "{doubtful} {channel}");
                let mut message = MessageState::new(doubtful, VIBER_SMS.into(), Endpoint::Async);
                let channel = ReportedChannel::parse(channel);
                assert!(message.add_change(&RowChange::Found { status: "REJECTED".into(), msg_id: None, channel }));
                // The answer is stored as a receipt too.
                message.add_receipt(&rejected[0]);
                assert_eq!((message.state, message.refused_at_intake), (RowState::Failed, true), "{doubtful}");
            }
            let rejected = [receipt("viber", Status::Rejected, 1)];
            assert_eq!(
                state_after(doubtful, VIBER_SMS, &rejected),
                RowState::Accepted,
                "SMS can still be tried: {doubtful}"
            );
            let tried = [receipt("viber", Status::Routing, 1), receipt("viber", Status::Rejected, 2)];
            assert_eq!(
                state_after_on_endpoint(Endpoint::Async, doubtful, VIBER_SMS, &tried),
                RowState::Accepted,
                "{doubtful}"
            );
        }
    }

    #[test]
    fn channel_report_disproves_a_rejection_at_intake() {
        let judge = |receipts: &[StoredReceipt]| {
            let mut message = MessageState::new(RowState::Queued, VIBER_SMS.into(), Endpoint::Async);
            for receipt in receipts {
                message.add_receipt(receipt);
            }
            (message.state, message.refused_at_intake)
        };
        let rejected = receipt("viber", Status::Rejected, 1);
        assert_eq!(judge(std::slice::from_ref(&rejected)), (RowState::Failed, true));
        assert_eq!(judge(&[rejected.clone(), receipt("", Status::Rejected, 2)]), (RowState::Failed, true));
        assert_eq!(judge(&[rejected.clone(), receipt("sms", Status::Accepted, 2)]), (RowState::Failed, false));
        assert_eq!(judge(&[rejected, receipt("sms", Status::Delivered, 2)]), (RowState::Delivered, false));
    }

    #[test]
    fn last_inquiry_makes_a_failure_final() {
        let viber = receipt("viber", Status::Expired, 1);
        let inquiry_receipt = |status| {
            let mut stored = receipt("viber", status, 1);
            stored.receipt.source = ReceiptSource::AskedLast;
            stored
        };
        assert_eq!(
            state_after(RowState::Accepted, VIBER_SMS, &[viber.clone(), inquiry_receipt(Status::Expired)]),
            RowState::Failed
        );
        assert_eq!(
            state_after(RowState::Queued, VIBER_SMS, &[viber.clone(), inquiry_receipt(Status::Accepted)]),
            RowState::Queued
        );
        let late = receipt("sms", Status::Delivered, 0);
        assert_eq!(
            state_after(RowState::Accepted, VIBER_SMS, &[viber, inquiry_receipt(Status::Expired), late]),
            RowState::Delivered
        );
    }

    #[test]
    fn pending_receipt_resolves_only_rows_in_doubt() {
        for reported in [receipt("sms", Status::Routing, 1), receipt("viber", Status::Expired, 1)] {
            for doubtful in
                [RowState::InDoubt, RowState::Unresolved, RowState::AssumedSent, RowState::NotSent, RowState::Sending]
            {
                assert_eq!(
                    state_after(doubtful, VIBER_SMS, std::slice::from_ref(&reported)),
                    RowState::Accepted,
                    "{doubtful}"
                );
            }
            for known in [
                RowState::Queued,
                RowState::Accepted,
                RowState::Delivered,
                RowState::Read,
                RowState::Failed,
                RowState::Rejected,
            ] {
                assert_eq!(state_after(known, VIBER_SMS, std::slice::from_ref(&reported)), known);
            }
        }
    }

    #[test]
    fn retried_message_ignores_old_receipts_except_a_delivery() {
        let reported = |status| {
            let mut message = MessageState::new(RowState::Planned, OperationKind::Sms.into(), Endpoint::Sync);
            message.before_retry = Some(RowState::Failed);
            message.add_receipt(&receipt("sms", status, 1)).then_some(message.state)
        };
        assert_eq!(reported(Status::Rejected), None);
        assert_eq!(reported(Status::Routing), None);
        assert_eq!(reported(Status::Delivered), Some(RowState::Delivered));
    }
}
