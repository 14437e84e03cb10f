//! Plans of test messages: who gets them, and of which row; approved like a run, for exactly these recipients.

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::PlanOptions;
use super::made::plan_campaign;
use super::pin::{find_usable_approval, load_approvals};
use super::planned::store_plan;
use crate::domain::{Phone, Row};
use crate::ledger::Approval;
use crate::runs::digest::Digest;
use crate::runs::{Adapters, Error, Inputs, ListSurvey, RunRequest};

/// The recipients of test messages. Their numbers are in no record of the ledger.
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

/// The approval of test messages of a row to these numbers; else the digest of the plan, which is kept for an approval.
pub(in crate::runs) async fn find_test_approval(
    adapters: &Adapters,
    inputs: &Inputs,
    (list, (row, phones)): (&ListSurvey, (Row, &[Phone])),
) -> Result<Result<Approval, String>, Error> {
    let (mut planned, _) = plan_campaign(inputs, list, (&RoaringBitmap::from([row.get()]), &RunRequest::default()));
    let recipients = TestRecipients::from_phones(phones);
    planned.options = PlanOptions { rows: Some(row.to_string()), tests_to: Some(recipients), ..planned.options };
    planned.messages = phones.len() as u64;
    // The messages of a test have no price in a plan.
    planned.cost = None;
    let messages = planned.messages;
    let digest = store_plan(adapters, planned, &inputs.destination).await?;
    let rule = inputs.destination.profile().and_then(|profile| profile.approval.as_ref());
    let given = load_approvals(adapters.ledger.as_ref(), &digest, rule).await?;
    Ok(find_usable_approval(&given, (adapters.clock)(), messages).cloned().ok_or(digest))
}
