//! Queries about the `approval` rules of accounts.

use sqlx::Row as _;

use super::change::StatementError;
use super::dialect::{Adapter, Connection, Record};
use super::look::read_ledger;
use super::runs::timestamp_from_micros;
use super::statement::{query, read_lossy};
use crate::ledger::checksum::Checksum;
use crate::ledger::{ApprovalRuleStore, KeptApprovalRule, LedgerError, LedgerFuture};

/// What stands between hosts in their column.
const HOST_SEPARATOR: &str = " ";

impl ApprovalRuleStore for Adapter {
    fn list_approval_rules(&self) -> LedgerFuture<'_, Vec<KeptApprovalRule>> {
        Box::pin(async move {
            match self.keeps_approval_rules() {
                true => read_ledger!(self, load_rules),
                false => Ok(Vec::new()),
            }
        })
    }

    fn keep_approval_rule(&self, rule: KeptApprovalRule) -> LedgerFuture<'_, ()> {
        Box::pin(async move {
            match self.keeps_approval_rules() {
                true => self.write(move |connection, _| Box::pin(store_rule(connection, rule.clone()))).await,
                false => Ok(()),
            }
        })
    }
}

/// Each rule with the name of its account, as far as it can be read.
pub(super) async fn list_stored_rules(
    reader: &mut Connection,
) -> Result<Vec<(String, Result<KeptApprovalRule, StatementError>)>, StatementError> {
    let rows = query("SELECT * FROM approval_rules ORDER BY key").fetch_all(reader).await?;
    Ok(rows.iter().map(|row| (read_lossy(row, "account"), rule_from_row(row))).collect())
}

async fn load_rules(reader: &mut Connection) -> Result<Vec<KeptApprovalRule>, StatementError> {
    let rows = query("SELECT * FROM approval_rules ORDER BY key").fetch_all(reader).await?;
    rows.iter().map(rule_from_row).collect()
}

fn rule_from_row(row: &Record) -> Result<KeptApprovalRule, StatementError> {
    let hosts: String = row.try_get("hosts")?;
    let kept = KeptApprovalRule {
        account: row.try_get("account")?,
        gateway: row.try_get("gateway")?,
        hosts: hosts.split(HOST_SEPARATOR).map(str::to_owned).collect(),
        rule: row.try_get("rule")?,
        by: row.try_get("recorded_by")?,
        at: timestamp_from_micros(row.try_get("at")?)?,
    };
    match rule_checksum(&kept).matches(row.try_get("sum")?) {
        true => Ok(kept),
        false => Err(LedgerError::Damaged { what: format!("the approval rule for account {}", kept.account) }.into()),
    }
}

async fn store_rule(connection: &mut Connection, rule: KeptApprovalRule) -> Result<(), StatementError> {
    let sum = rule_checksum(&rule).finish();
    let KeptApprovalRule { account, gateway, hosts, rule, by, at } = rule;
    query(
        "INSERT INTO approval_rules (account, gateway, hosts, rule, recorded_by, at, sum)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(account)
    .bind(gateway)
    .bind(hosts.join(HOST_SEPARATOR))
    .bind(rule)
    .bind(by)
    .bind(at.as_microsecond())
    .bind(sum)
    .execute(connection)
    .await?;
    Ok(())
}

fn rule_checksum(kept: &KeptApprovalRule) -> Checksum {
    let KeptApprovalRule { account, gateway, hosts, rule, by, at } = kept;
    let hosts = &hosts.join(HOST_SEPARATOR);
    let sum = [account, gateway, hosts, rule, by]
        .into_iter()
        .fold(Checksum::for_table("approval_rules"), |sum, text| sum.with_text(text));
    sum.with_number(at.as_microsecond())
}
