//! Queries about the `approval` rules of accounts.

use sqlx::Row as _;

use super::change::Failure;
use super::dialect::{Adapter, Connection};
use super::look::look;
use super::runs::instant;
use super::statement::query;
use crate::ledger::checksum::Checksum;
use crate::ledger::{ApprovalRules, KeptApprovalRule, LedgerError, LedgerFuture};

impl ApprovalRules for Adapter {
    fn approval_rule<'a>(&'a self, account: &'a str, gateway: &'a str) -> LedgerFuture<'a, Option<KeptApprovalRule>> {
        Box::pin(async move {
            match self.keeps_approval_rules() {
                true => look!(self, latest, account, gateway),
                false => Ok(None),
            }
        })
    }

    fn keep_approval_rule(&self, rule: KeptApprovalRule) -> LedgerFuture<'_, ()> {
        Box::pin(async move {
            match self.keeps_approval_rules() {
                true => self.write(move |connection, _| Box::pin(keep(connection, rule.clone()))).await,
                false => Ok(()),
            }
        })
    }
}

async fn latest(reader: &mut Connection, account: &str, gateway: &str) -> Result<Option<KeptApprovalRule>, Failure> {
    let row = query("SELECT * FROM approval_rules WHERE account = $1 OR gateway = $2 ORDER BY key DESC LIMIT 1")
        .bind(account)
        .bind(gateway)
        .fetch_optional(reader)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let kept = KeptApprovalRule {
        account: row.try_get("account")?,
        gateway: row.try_get("gateway")?,
        rule: row.try_get("rule")?,
        by: row.try_get("recorded_by")?,
        at: instant(row.try_get("at")?)?,
    };
    match sum(&kept).agrees(row.try_get("sum")?) {
        true => Ok(Some(kept)),
        false => Err(LedgerError::Damaged { what: format!("the approval rule of the account {account}") }.into()),
    }
}

async fn keep(connection: &mut Connection, rule: KeptApprovalRule) -> Result<(), Failure> {
    let sum = sum(&rule).finish();
    let KeptApprovalRule { account, gateway, rule, by, at } = rule;
    query("INSERT INTO approval_rules (account, gateway, rule, recorded_by, at, sum) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(account)
        .bind(gateway)
        .bind(rule)
        .bind(by)
        .bind(at.as_microsecond())
        .bind(sum)
        .execute(connection)
        .await?;
    Ok(())
}

fn sum(kept: &KeptApprovalRule) -> Checksum {
    let KeptApprovalRule { account, gateway, rule, by, at } = kept;
    let sum = [account, gateway, rule, by].into_iter().fold(Checksum::of("approval_rules"), |sum, text| sum.text(text));
    sum.number(at.as_microsecond())
}
