//! Approvals: review and confirmation of plans, standing approvals, approvals of pending single operations and of test
//! messages, and signatures of approvals and of evidence.
//!
//! Test messages are approved like a run, for exactly their recipients. If the profile names approvers, the sender of a
//! campaign cannot approve the campaign without an approver's key.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use roaring::RoaringBitmap;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::enforcement::{find_plan, find_usable_approval, load_approvals};
use super::{
    Digest, PlanContent, PlanOptions, PlanRefusal, PlannedCampaign, list_valid_digests, plan_campaign, store_plan,
    survey_for_plan,
};
use crate::begin::freeze_inputs;
use crate::ports::confirm;
use crate::schedule::{find_active_schedule, standing_digest};
use crate::{
    Adapters, Consent, Error, Inputs, ListSurvey, Proposal, Round, RunRequest, current_person, fetch_list, refuse_start,
};
use campaign_core::domain::{Phone, Row, RowSet};
use campaign_engine::delivery::FrozenInputs;
use campaign_ledger::{ActiveSchedule, Approval, ApprovalFilter, Ledger, LedgerError, OccurrenceKey, Plan, PlanRecord};
use campaign_manifest::{ApproverKey, CampaignDay, Profile, SecretSource};

/// A plan that is under review for its approval.
#[derive(Debug)]
pub struct PlanReview {
    /// The digest of the plan.
    pub digest: String,
    /// The planned campaign.
    pub planned: PlannedCampaign,
    /// The campaign as its files are now, which equals the plan.
    pub inputs: Arc<Inputs>,
    /// The current survey of the list.
    pub survey: ListSurvey,
    /// The rows that get a message.
    pub rows: RoaringBitmap,
}

/// Reviews the plan whose digest has this prefix.
///
/// # Errors
/// If the plan does not exist, needs no approval or already has one, or the campaign has changed.
pub async fn review_plan(adapters: &Adapters, prefix: &str) -> Result<PlanReview, Error> {
    let plan = find_plan(adapters.ledger.as_ref(), prefix).await?;
    let planned = PlanContent::parse_campaign(&plan)?;
    PlanReview::load(adapters, plan.digest, *planned).await
}

/// An approval in advance for the occurrences of a schedule.
#[derive(Clone, Copy, Debug)]
pub struct StandingApproval {
    /// The time at which the approval expires.
    pub until: Timestamp,
    /// The maximum number of recipients of each occurrence.
    pub up_to: u64,
}

/// Asks for confirmation and stores the approval. One run can use the approval while the plan is kept. If `standing` is
/// given, every occurrence can use the approval until the time in `standing`.
///
/// If the profile names approvers, one of them signs the approval.
///
/// # Errors
/// If the plan was not approved.
pub async fn approve_plan(
    adapters: &Adapters,
    review: &PlanReview,
    key: Option<&PrivateKey>,
    standing: Option<StandingApproval>,
    consent: &dyn Consent,
) -> Result<Approval, Error> {
    let profile = review.profile()?;
    let by = find_approver(review, profile, key)?;
    let digest = match standing {
        Some(_) => review.find_standing_digest(adapters).await?,
        None => review.digest.clone(),
    };
    let samples = match consent.shows_proposals() {
        true => review.survey.pick_samples(&review.inputs, &review.rows)?,
        false => Vec::new(),
    };
    confirm(consent, Proposal::Approve { approving: review, profile, standing, samples: &samples }).await?;
    // The time is rounded as in the ledger, so that the signed time equals the stored time.
    let now = (adapters.clock)().as_microsecond();
    let at = Timestamp::from_microsecond(now).map_err(|error| Error::Internal(error.to_string()))?;
    let retention = SignedDuration::from_hours(24 * i64::from(Plan::KEPT_DAYS));
    let approval = Approval {
        token: new_token(),
        digest,
        by,
        up_to: standing.map_or(review.planned.messages, |standing| standing.up_to),
        at,
        until: standing.map_or(at.checked_add(retention).unwrap_or(at), |standing| standing.until),
        standing: standing.is_some(),
    };
    let approval = match key {
        Some(key) => key.sign(approval),
        None => approval,
    };
    adapters.ledger.store_record(PlanRecord::Approval(approval.clone())).await?;
    Ok(approval)
}

/// Finds the approver: the owner of the key if the profile names approvers, otherwise the person at the terminal. A key
/// is required if the profile names approvers, and refused if it does not.
fn find_approver(review: &PlanReview, profile: &Profile, key: Option<&PrivateKey>) -> Result<String, Error> {
    let gateway = || profile.name.clone();
    match (&profile.approval, key) {
        (None, None) => Ok(current_person()),
        (None, Some(_)) => Err(Error::Plan(PlanRefusal::NoApprovers)),
        (Some(_), None) => {
            Err(Error::Plan(PlanRefusal::NeedsKey { digest: review.digest.clone(), gateway: gateway() }))
        }
        (Some(rule), Some(key)) => {
            let public_key = key.public_key();
            let approver = rule.by.iter().find(|(_, public)| Some(*public) == public_key);
            let unknown_key = || Error::Plan(PlanRefusal::UnknownKey { gateway: gateway() });
            approver.map(|(name, _)| name.clone()).ok_or_else(unknown_key)
        }
    }
}

/// Generates the token of a typed approval. The token has no signature, so only the ledger proves the approval.
fn new_token() -> String {
    format!("typed-{:032x}", rand::random::<u128>())
}

impl PlanReview {
    /// Loads the current campaign and list for a plan, and refuses a campaign that differs from the plan.
    async fn load(adapters: &Adapters, digest: String, planned: PlannedCampaign) -> Result<Self, Error> {
        let inputs = Arc::new(load_planned_inputs(adapters, &planned)?);
        let rule = inputs.destination.profile().and_then(|profile| profile.approval.as_ref());
        let approvals = load_approvals(adapters.ledger.as_ref(), &digest, rule).await?;
        if let Some(approval) = find_usable_approval(&approvals, (adapters.clock)(), planned.messages) {
            return Err(Error::Plan(PlanRefusal::Approved { digest, by: approval.by.clone() }));
        }
        // The resources are checked before the list is fetched, because fetching can start a program.
        planned.refuse_changed_resources(&digest, &inputs)?;
        if inputs.list.is_unfetched()
            && planned.options.occurrence.is_some()
            && find_active_schedule(adapters, &inputs).await?.is_none()
        {
            return Err(Error::Plan(PlanRefusal::NoSchedule { file: inputs.campaign.file.clone() }));
        }
        let inputs = fetch_list(&inputs, adapters.fetch_context()).await?;
        let PlanOptions { again, occurrence, .. } = &planned.options;
        // A refusal to start is ignored here, because the run reports it.
        let open = refuse_start(adapters.ledger.as_ref(), &inputs).await.unwrap_or_default();
        let survey = survey_for_plan(adapters, &inputs, open, *again, occurrence.is_some()).await?;
        let rows = rebuild_request(&planned).choose_rows(&survey.survey.planned_rows(), survey.survey.last_row)?;
        let review = Self { digest, planned, inputs, survey, rows };
        review.refuse_changed_campaign()?;
        Ok(review)
    }

    /// The profile of the planned campaign, or an error for a rehearsal.
    fn profile(&self) -> Result<&Profile, Error> {
        self.inputs.destination.profile().ok_or(Error::Plan(PlanRefusal::Rehearsal))
    }

    /// Finds the digest that approves all occurrences of the campaign's schedule.
    async fn find_standing_digest(&self, adapters: &Adapters) -> Result<String, Error> {
        let Some(schedule) = find_active_schedule(adapters, &self.inputs).await? else {
            return Err(Error::Plan(PlanRefusal::NoSchedule { file: self.inputs.campaign.file.clone() }));
        };
        Ok(standing_digest(&schedule))
    }

    fn refuse_changed_campaign(&self) -> Result<(), Error> {
        let current: FrozenInputs = freeze_inputs(&self.inputs, &self.survey);
        let destination = &self.inputs.destination;
        let options = self.planned.options.clone().with_current_terms_of(&self.inputs);
        if list_valid_digests(&current, destination, &options)?.contains(&self.digest) {
            return Ok(());
        }
        let differences = self.planned.describe_differences(&current, destination, &options);
        let (file, gateway) = (self.inputs.campaign.file.clone(), self.inputs.campaign.brief.gateway.clone());
        Err(Error::Plan(PlanRefusal::Changed { digest: self.digest.clone(), file, gateway, differences }))
    }
}

/// Loads the planned campaign from its current files.
fn load_planned_inputs(adapters: &Adapters, planned: &PlannedCampaign) -> Result<Inputs, Error> {
    let (file, gateway) = (&planned.inputs.campaign_file, Some(planned.inputs.brief.gateway.as_str()));
    let Some((nominal, zone)) = planned.options.occurrence.clone() else {
        return Inputs::load(file, gateway, &adapters.profiles, CampaignDay::Of((adapters.clock)()));
    };
    let schedule = planned.inputs.brief.name.clone();
    let key = OccurrenceKey { schedule, nominal, zone };
    let unreadable = || Error::Input(format!("the plan's date cannot be read: {}", key.nominal));
    let occurrence = crate::occurrence::parse_occurrence(&key).ok_or_else(unreadable)?;
    crate::load_occurrence(&adapters.profiles, file, gateway, &occurrence)
}

/// Rebuilds the part of the planned request that selects rows.
fn rebuild_request(planned: &PlannedCampaign) -> RunRequest {
    let rows = planned.options.rows.as_ref().and_then(|rows| rows.parse::<RowSet>().ok());
    RunRequest { rows, limit: planned.options.limit, round: Round::Same, ..RunRequest::default() }
}

/// Counts the approvals of an occurrence's plan and of its schedule, valid or not.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn count_approvals(
    ledger: &dyn Ledger,
    schedule: &ActiveSchedule,
    digest: &str,
) -> Result<usize, LedgerError> {
    let (plan_approvals, standing_approvals) = (
        ledger.list_approvals(ApprovalFilter::Digest(digest)).await?,
        ledger.list_approvals(ApprovalFilter::Digest(&standing_digest(schedule))).await?,
    );
    Ok(plan_approvals.len() + standing_approvals.len())
}

/// The time for which an occurrence can wait for an approval.
pub const MAX_APPROVAL_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Finds the digest of the plan for an occurrence. Returns `None` if the occurrence has no plan.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn find_occurrence_plan(ledger: &dyn Ledger, key: &OccurrenceKey) -> Result<Option<String>, LedgerError> {
    let occurrence = Some((key.nominal.clone(), key.zone.clone()));
    let is_for_occurrence = |content: &PlanContent| match content {
        PlanContent::Campaign(planned) => {
            planned.inputs.brief.name == key.schedule && planned.options.occurrence == occurrence
        }
        PlanContent::Pending(_) => false,
    };
    // A damaged plan counts as missing: its occurrence is not sent.
    let plans = ledger.list_plans("").await?;
    Ok(plans
        .into_iter()
        .flatten()
        .find(|plan| PlanContent::from_plan(plan).is_ok_and(|content| is_for_occurrence(&content)))
        .map(|plan| plan.digest))
}

/// The recipients of test messages. The ledger stores only masked numbers and a hash of all numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRecipients {
    /// The numbers, masked.
    pub masked: Vec<String>,
    /// SHA-256 of all numbers.
    pub sha256: String,
}

impl TestRecipients {
    fn from_phones(phones: &[Phone]) -> Self {
        let mut phones = phones.to_vec();
        phones.sort_unstable();
        let all = phones.iter().fold(Digest::new(), |digest, phone| digest.with(phone.to_string()));
        Self { masked: phones.iter().map(|phone| phone.format_masked()).collect(), sha256: all.finish() }
    }
}

/// Finds an approval to send the message of a row to these phone numbers as a test. If there is no approval, returns
/// the digest of the stored plan, which a person can then approve.
pub(crate) async fn find_test_approval(
    adapters: &Adapters,
    inputs: &Inputs,
    list: &ListSurvey,
    row: Row,
    phones: &[Phone],
) -> Result<Result<Approval, String>, Error> {
    let (mut planned, _) = plan_campaign(inputs, list, &RoaringBitmap::from([row.get()]), &RunRequest::default());
    let recipients = TestRecipients::from_phones(phones);
    planned.options = PlanOptions { rows: Some(row.to_string()), tests_to: Some(recipients), ..planned.options };
    planned.messages = phones.len() as u64;
    // The estimated cost is for one message to the row, not for messages to all test recipients.
    planned.cost = None;
    let messages = planned.messages;
    let digest = store_plan(adapters, planned, &inputs.destination).await?;
    let rule = inputs.destination.profile().and_then(|profile| profile.approval.as_ref());
    let approvals = load_approvals(adapters.ledger.as_ref(), &digest, rule).await?;
    Ok(find_usable_approval(&approvals, (adapters.clock)(), messages).cloned().ok_or(digest))
}

/// The address at which a pending operation can be reviewed. The operation exists only in the memory of the process
/// that will send it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRequest {
    /// The gateway's profile.
    pub gateway: String,
    /// The address of the process on loopback.
    pub address: String,
    /// The token for the address.
    pub token: String,
}

/// The time for which the approval of a single operation is valid.
const VALID_FOR: SignedDuration = SignedDuration::from_hours(1);

/// Stores where a pending operation can be reviewed.
///
/// # Errors
/// If the ledger cannot be written.
pub async fn store_pending_request(adapters: &Adapters, digest: &str, pending: PendingRequest) -> Result<(), Error> {
    let record = PlanContent::Pending(pending).to_record()?;
    let plan = Plan { digest: digest.to_owned(), record, at: (adapters.clock)() };
    adapters.ledger.store_record(PlanRecord::Plan(plan)).await?;
    Ok(())
}

/// Marks an approval of this digest as used and returns the approval. Returns `None` if there is no unused approval.
///
/// # Errors
/// If the ledger cannot be written.
pub async fn use_approval(ledger: &dyn Ledger, digest: &str) -> Result<Option<Approval>, Error> {
    for stored in ledger.list_approvals(ApprovalFilter::Digest(digest)).await? {
        if ledger.use_approval(&stored.approval.token, None).await? {
            return Ok(Some(stored.approval));
        }
    }
    Ok(None)
}

/// Makes an approval usable again after the operation was proven not to have happened.
///
/// # Errors
/// If the ledger cannot be written.
pub async fn return_approval(ledger: &dyn Ledger, used: Approval) -> Result<(), Error> {
    ledger.store_record(PlanRecord::Approval(Approval { token: new_token(), ..used })).await?;
    Ok(())
}

/// Finds a pending operation by the prefix of its digest. Returns the full digest with the operation. Returns `None` if
/// the digest belongs to the plan of a campaign.
///
/// # Errors
/// If the digest is unknown.
pub async fn find_pending_request(
    ledger: &dyn Ledger,
    prefix: &str,
) -> Result<Option<(String, PendingRequest)>, Error> {
    let plan = find_plan(ledger, prefix).await?;
    Ok(match PlanContent::from_plan(&plan)? {
        PlanContent::Pending(pending) => Some((plan.digest, pending)),
        PlanContent::Campaign(_) => None,
    })
}

/// Asks for confirmation of the shown text and stores the approval for one use within an hour.
///
/// # Errors
/// If the operation was not approved.
pub async fn approve_pending_request(
    adapters: &Adapters,
    digest: &str,
    pending: &PendingRequest,
    shown: &str,
    consent: &dyn Consent,
) -> Result<Approval, Error> {
    let now = (adapters.clock)();
    if let Some(earlier) = adapters
        .ledger
        .list_approvals(ApprovalFilter::Digest(digest))
        .await?
        .into_iter()
        .find(|stored| stored.is_valid(now))
    {
        return Err(Error::Plan(PlanRefusal::Approved { digest: digest.to_owned(), by: earlier.approval.by }));
    }
    confirm(consent, Proposal::Pending { gateway: &pending.gateway, shown }).await?;
    let at = (adapters.clock)();
    let approval = Approval {
        token: new_token(),
        digest: digest.to_owned(),
        by: current_person(),
        up_to: 1,
        at,
        until: at.checked_add(VALID_FOR).unwrap_or(at),
        standing: false,
    };
    adapters.ledger.store_record(PlanRecord::Approval(approval.clone())).await?;
    Ok(approval)
}

/// The domain of approval signatures, so that no other signature is valid as an approval.
const SIGNATURE_DOMAIN: &[u8] = b"campaign approval 1\0";

/// The domain of evidence signatures.
const EVIDENCE_DOMAIN: &[u8] = b"campaign evidence 1\0";

/// The prefix of a private key file.
const KEY_PREFIX: &str = "ed25519-private:";

/// A person's Ed25519 key, which signs approvals and evidence.
pub struct PrivateKey(Ed25519KeyPair);

/// The content of a token, without the signature. Times are microseconds since 1970.
#[derive(Serialize, Deserialize)]
struct ApprovalStatement {
    digest: String,
    by: String,
    up_to: u64,
    at: i64,
    until: i64,
    standing: bool,
}

impl PrivateKey {
    /// Generates a key pair and returns the line for the private key file, and the public key.
    ///
    /// # Errors
    /// If the key pair cannot be generated, which is a bug.
    pub fn generate_key_pair() -> Result<(SecretString, ApproverKey), Error> {
        let seed: [u8; 32] = rand::random();
        let key = Self::from_seed(&seed).ok_or_else(|| Error::Internal("cannot generate a key pair".to_owned()))?;
        let public =
            key.public_key().ok_or_else(|| Error::Internal("the generated key pair has no public key".to_owned()))?;
        Ok((SecretString::from(format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(seed))), public))
    }

    /// Reads the key from a file that only its owner can read.
    ///
    /// # Errors
    /// If the file cannot be read or contains no key. The message never contains any part of the key.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let source = SecretSource::File(file.to_owned());
        let line = source.read_secret("the private approval key", &|_| None).map_err(Error::Input)?;
        let seed = line.expose_secret().strip_prefix(KEY_PREFIX).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        let wrong = || Error::Input(format!("`{}` does not contain a private approval key", file.display()));
        seed.and_then(|seed| Self::from_seed(&seed)).ok_or_else(wrong)
    }

    fn from_seed(seed: &[u8]) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(seed).ok().map(Self)
    }

    /// The public key that belongs to this private key.
    pub fn public_key(&self) -> Option<ApproverKey> {
        ApproverKey::from_bytes(self.0.public_key().as_ref())
    }

    /// Signs the digest of evidence. The signature is in URL-safe Base64.
    pub fn sign_evidence(&self, digest: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.0.sign(&[EVIDENCE_DOMAIN, digest.as_bytes()].concat()))
    }

    /// Signs an approval and sets its token.
    pub(super) fn sign(&self, approval: Approval) -> Approval {
        let Approval { digest, by, up_to, at, until, standing, token: _ } = &approval;
        let statement = ApprovalStatement {
            digest: digest.clone(),
            by: by.clone(),
            up_to: *up_to,
            at: at.as_microsecond(),
            until: until.as_microsecond(),
            standing: *standing,
        };
        // Serializing strings, numbers and booleans cannot fail.
        let payload = serde_json::to_vec(&statement).unwrap_or_default();
        let signature = self.0.sign(&[SIGNATURE_DOMAIN, &payload].concat());
        let token = format!("{}.{}", URL_SAFE_NO_PAD.encode(&payload), URL_SAFE_NO_PAD.encode(signature));
        Approval { token, ..approval }
    }
}

/// Returns the approval in a token if the approval is signed with the key that belongs to the approver's name in
/// `keys`.
pub(super) fn verify_token(token: &str, keys: &[(String, ApproverKey)]) -> Option<Approval> {
    let (payload, signature) = token.trim().split_once('.')?;
    let (payload, signature) = (URL_SAFE_NO_PAD.decode(payload).ok()?, URL_SAFE_NO_PAD.decode(signature).ok()?);
    let ApprovalStatement { digest, by, up_to, at, until, standing } = serde_json::from_slice(&payload).ok()?;
    let (_, key) = keys.iter().find(|(name, _)| *name == by)?;
    UnparsedPublicKey::new(&ED25519, key.as_bytes()).verify(&[SIGNATURE_DOMAIN, &payload].concat(), &signature).ok()?;
    let (at, until) = (Timestamp::from_microsecond(at).ok()?, Timestamp::from_microsecond(until).ok()?);
    Some(Approval { token: token.trim().to_owned(), digest, by, up_to, at, until, standing })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn approval(digest: String, up_to: u64) -> Approval {
        let at = Timestamp::from_microsecond(1_800_000_000_000_000).unwrap();
        let (token, by) = (String::new(), "Olha".to_owned());
        Approval { token, digest, by, up_to, at, until: at, standing: false }
    }

    fn private_key(seed: u8) -> PrivateKey {
        PrivateKey::from_seed(&[seed; 32]).unwrap()
    }

    fn approver_keys(name: &str, seed: u8) -> Vec<(String, ApproverKey)> {
        vec![(name.to_owned(), private_key(seed).public_key().unwrap())]
    }

    #[test]
    fn signature_is_bound_to_the_approver_and_the_purpose() {
        let signed = private_key(1).sign(approval("d1".to_owned(), 7));
        assert_eq!(verify_token(&signed.token, &approver_keys("Olha", 1)), Some(signed.clone()));
        assert_eq!(verify_token(&signed.token, &approver_keys("Olha", 2)), None, "another key");
        assert_eq!(verify_token(&signed.token, &approver_keys("Taras", 1)), None, "another name");
        assert_eq!(verify_token(&signed.token, &[]), None);
        let payload = signed.token.split_once('.').unwrap().0;
        let bare = private_key(1).0.sign(&URL_SAFE_NO_PAD.decode(payload).unwrap());
        let bare = format!("{payload}.{}", URL_SAFE_NO_PAD.encode(bare));
        assert_eq!(verify_token(&bare, &approver_keys("Olha", 1)), None, "a signature without the approval domain");
    }

    #[test]
    fn signed_evidence_is_verified_with_the_public_key() {
        let key = private_key(1);
        let signature = URL_SAFE_NO_PAD.decode(key.sign_evidence("d1")).unwrap();
        let public = key.public_key().unwrap();
        let verify = |text: &[u8]| UnparsedPublicKey::new(&ED25519, public.as_bytes()).verify(text, &signature);
        assert!(verify(b"campaign evidence 1\0d1").is_ok() && verify(b"campaign evidence 1\0d2").is_err());
        assert!(verify(b"campaign approval 1\0d1").is_err());
    }

    proptest! {
        #[test]
        fn altered_token_is_rejected(at in 0..400_usize, letter in "[A-Za-z0-9_.-]") {
            let token = private_key(1).sign(approval("d1".to_owned(), 7)).token;
            let at = at % token.len();
            let other = format!("{}{letter}{}", &token[..at], &token[at + 1..]);
            prop_assert_eq!(verify_token(&other, &approver_keys("Olha", 1)).is_some(), other == token);
        }

        #[test]
        fn malformed_token_is_rejected(token in ".{0,80}") {
            prop_assert!(verify_token(&token, &approver_keys("Olha", 1)).is_none());
        }
    }
}
