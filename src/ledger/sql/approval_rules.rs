//! Queries about the `approval` rules of accounts.

use sqlx::Row as _;

use super::change::Failure;
use super::dialect::{Adapter, Connection, Record};
use super::look::look;
use super::runs::instant;
use super::statement::{query, readable};
use crate::ledger::checksum::Checksum;
use crate::ledger::{ApprovalRules, KeptApprovalRule, LedgerError, LedgerFuture};

/// What stands between hosts in their column.
const BETWEEN_HOSTS: &str = " ";

impl ApprovalRules for Adapter {
    fn approval_rules(&self) -> LedgerFuture<'_, Vec<KeptApprovalRule>> {
        Box::pin(async move {
            match self.keeps_approval_rules() {
                true => look!(self, read),
                false => Ok(Vec::new()),
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

/// Each rule with the name of its account, as far as it can be read.
pub(super) async fn stored(
    reader: &mut Connection,
) -> Result<Vec<(String, Result<KeptApprovalRule, Failure>)>, Failure> {
    let rows = query("SELECT * FROM approval_rules ORDER BY key").fetch_all(reader).await?;
    Ok(rows.iter().map(|row| (readable(row, "account"), rule(row))).collect())
}

async fn read(reader: &mut Connection) -> Result<Vec<KeptApprovalRule>, Failure> {
    let rows = query("SELECT * FROM approval_rules ORDER BY key").fetch_all(reader).await?;
    rows.iter().map(rule).collect()
}

fn rule(row: &Record) -> Result<KeptApprovalRule, Failure> {
    let hosts: String = row.try_get("hosts")?;
    let kept = KeptApprovalRule {
        account: row.try_get("account")?,
        gateway: row.try_get("gateway")?,
        hosts: hosts.split(BETWEEN_HOSTS).map(str::to_owned).collect(),
        rule: row.try_get("rule")?,
        by: row.try_get("recorded_by")?,
        at: instant(row.try_get("at")?)?,
    };
    match sum(&kept).agrees(row.try_get("sum")?) {
        true => Ok(kept),
        false => Err(LedgerError::Damaged { what: format!("the approval rule for account {}", kept.account) }.into()),
    }
}

async fn keep(connection: &mut Connection, rule: KeptApprovalRule) -> Result<(), Failure> {
    let sum = sum(&rule).finish();
    let KeptApprovalRule { account, gateway, hosts, rule, by, at } = rule;
    query(
        "INSERT INTO approval_rules (account, gateway, hosts, rule, recorded_by, at, sum)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(account)
    .bind(gateway)
    .bind(hosts.join(BETWEEN_HOSTS))
    .bind(rule)
    .bind(by)
    .bind(at.as_microsecond())
    .bind(sum)
    .execute(connection)
    .await?;
    Ok(())
}

fn sum(kept: &KeptApprovalRule) -> Checksum {
    let KeptApprovalRule { account, gateway, hosts, rule, by, at } = kept;
    let hosts = &hosts.join(BETWEEN_HOSTS);
    let sum = [account, gateway, hosts, rule, by]
        .into_iter()
        .fold(Checksum::of("approval_rules"), |sum, text| sum.text(text));
    sum.number(at.as_microsecond())
}
