//! Evidence for an authority about one phone number: every message with its purpose, consent and approvals, and every
//! opt-out.
//!
//! It comes from the records of the runs. Consents are never read from a list, so a later list cannot change the
//! evidence.

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::run_view::load_approvals;
use super::{OptOutHistory, RecipientInRun, RecipientRecord, UnreadableRun};
use campaign_core::domain::{Phone, Row};
use campaign_ledger::{Approval, ConsentEvidence, Ledger, LedgerError, RowSpan, Run};

/// The beginning of the digested bytes, so that no other digest equals one of evidence.
pub const EVIDENCE_FORMAT: &str = "campaign evidence 1";

/// The evidence about a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The facts.
    pub facts: Value,
    /// The facts as the digest covers them: JSON with sorted keys and without spaces.
    pub text: String,
    /// SHA-256 of the text, in hexadecimal.
    pub digest: String,
}

impl Evidence {
    /// The evidence about a number with these messages.
    #[must_use]
    pub fn from_messages(
        phone: Phone,
        person: &RecipientRecord,
        messages: Vec<Value>,
        opt_outs: &OptOutHistory,
        now: Timestamp,
    ) -> Self {
        let RecipientRecord { runs: _, unreadable, purged } = person;
        let unread: Vec<&str> = unreadable.iter().map(|UnreadableRun { run, .. }| run.as_str()).collect();
        Self::from_facts(json!({
            "format": EVIDENCE_FORMAT, "phone": phone.to_string(), "made_at": format!("{now:.3}"),
            "messages": messages, "opt_outs": opt_outs.listed_json(), "ended_opt_outs": opt_outs.ended_json(),
            "complete": unread.is_empty() && *purged == 0, "unread_runs": unread, "purged_runs": purged,
        }))
    }

    /// The evidence with its digest.
    fn from_facts(facts: Value) -> Self {
        // Maps of this type are sorted by key, so the same facts always give the same text.
        let text = facts.to_string();
        let hash = Sha256::digest(text.as_bytes());
        let digest = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { facts, text, digest }
    }
}

/// The messages to a number, each with its consent and approvals.
///
/// # Errors
/// If the ledger cannot be read, or a record of consent is damaged.
pub async fn load_evidence(ledger: &dyn Ledger, person: &RecipientRecord) -> Result<Vec<Value>, LedgerError> {
    let mut messages = Vec::new();
    for RecipientInRun { run, rows: _, results } in &person.runs {
        let approvals = load_approvals(ledger, run).await?;
        for row in results {
            let consent = load_consent(ledger, run, row).await?;
            messages.push(message_json(run, row, consent.as_ref(), &approvals));
        }
    }
    Ok(messages)
}

/// The evidence of consent of a row of the results.
async fn load_consent(ledger: &dyn Ledger, run: &Run, row: &Value) -> Result<Option<ConsentEvidence>, LedgerError> {
    let Some(row) = row["row"].as_u64().and_then(|row| u32::try_from(row).ok()).map(Row::new) else {
        return Ok(None);
    };
    Ok(ledger.load_consents(run.key, RowSpan { first: row, last: row }).await?.pop())
}

fn message_json(run: &Run, row: &Value, consent: Option<&ConsentEvidence>, approvals: &[Approval]) -> Value {
    let consent = consent.map(|ConsentEvidence { row: _, value, at, source, wording }| {
        json!({ "value": value, "at": at, "source": source, "wording": wording })
    });
    let approval =
        |Approval { by, at, digest, .. }: &Approval| json!({ "by": by, "at": format!("{at:.3}"), "plan": digest });
    json!({
        "run": run.name(), "campaign": run.campaign, "edition": run.edition, "began_at": format!("{:.3}", run.began_at),
        "gateway": run.gateway, "rehearsal": !run.live, "purpose": run.suppression.purpose.name(),
        "mandatory": run.suppression.ignores_list(),
        "row": row["row"], "id": row["id"], "operation": row["operation"], "state": row["state"],
        "reason": row["reason"], "error": row["error"], "sent_at": row["submitted_at"],
        "delivered_by": row["delivered_by"], "delivered_at": row["delivered_at"], "consent": consent,
        "approvals": approvals.iter().map(approval).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_covers_the_facts_with_sorted_keys() {
        let evidence = Evidence::from_facts(json!({ "phone": "380501234567", "a": [1, "так"] }));
        assert_eq!(evidence.text, "{\"a\":[1,\"так\"],\"phone\":\"380501234567\"}");
        assert_eq!(evidence.digest.len(), 64);
        assert_ne!(evidence.digest, Evidence::from_facts(json!({ "phone": "380501234568", "a": [1, "так"] })).digest);
    }
}
