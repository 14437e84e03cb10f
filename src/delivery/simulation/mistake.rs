//! Wrong implementations, to show that the judge sees them.

/// One thing that is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// No intent is recorded.
    NoIntent,
    /// An intent is said to be recorded before it is.
    IntentAfterSend,
    /// An outcome is said to be recorded before it is.
    ReportedBeforeCommit,
    /// An intent is recorded whoever has the run.
    NoEpochCheck,
    /// An envelope leaves whoever has the run by then.
    LeaseIgnored,
    /// What the owner before had begun is sent again.
    DoubtResent,
    /// A time-out counts as proof that nothing was sent.
    SilenceIsNotSent,
    /// An HTTP status other than 200 counts as proof that nothing was sent.
    StatusIsNotSent,
    /// Another start gives a row another identifier.
    FreshIdentifier,
    /// Answers belong to operations by their position alone.
    ByPositionOnly,
    /// One denial is enough to send again.
    OneDenialIsEnough,
    /// Answers are believed although the gateway says the same of everything.
    BlindStatusTrusted,
    /// The account's pace lets a whole second's operations through at once after a rest.
    BurstingPace,
    /// A start of which nothing was taken goes on whatever becomes of its first messages.
    NoCanary,
    /// The guard skips those only whose message was surely taken.
    GuardForgetsDoubt,
    /// A webhook is acknowledged before what it tells is on the disk.
    AcknowledgedBeforeCommit,
    /// Nobody looks at what webhooks told.
    ReceiptsForgotten,
    /// An intent for rows of a share is recorded whoever has the share.
    ShareEpochIgnored,
    /// An envelope of a share leaves whoever has the share by then.
    ShareLeaseIgnored,
    /// What those had begun who are gone is not in doubt: nobody knows of it.
    ShareWithoutDoubt,
    /// Whoever knows an earlier sharing out of a run draws of a later one.
    SharingUnnumbered,
    /// Whoever opts out after a run was planned gets its message.
    OptOutIgnored,
    /// What seems to have failed is sent again without asking whether another channel delivered it.
    RetryUnasked,
}
