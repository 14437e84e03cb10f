//! Plans, approvals, and the `approval` rules of accounts in the tables.

use sqlx::Row as _;

use super::dialect::{Adapter, Connection, Record};
use super::runs::{timestamp_from_micros, to_signed, to_unsigned};
use super::{Now, StatementError, capture_damage, query, read_ledger, read_lossy};
use crate::encoding::Checksum;
use crate::rules::oldest_kept_plan_time;
use crate::{
    Approval, ApprovalFilter, ApprovalUse, DamagedPlan, LedgerError, LedgerFuture, Plan, PlanFilter, PlanRecord,
    PlanStore, RunId, StoredApproval, StoredApprovalRule, StoredPlanRecord,
};

/// Selects approvals, each with its last use.
const SELECT_LAST_USES: &str = "
    SELECT approvals.*, used.at AS used_at, used.run AS used_run, used.sum AS used_sum FROM approvals
    LEFT JOIN approval_uses used ON used.key = (SELECT max(key) FROM approval_uses WHERE token = approvals.token)";

impl PlanStore for Adapter {
    fn store_record(&self, record: PlanRecord) -> LedgerFuture<'_, bool> {
        // The tables of earlier versions cannot store rules.
        if matches!(record, PlanRecord::Rule(_)) && !self.supports_approval_rules() {
            return Box::pin(async { Ok(true) });
        }
        Box::pin(self.write(move |connection, now| {
            let record = record.clone();
            Box::pin(async move {
                match record {
                    PlanRecord::Plan(plan) => store_plan(connection, now, plan).await?,
                    PlanRecord::Approval(approval) => return insert_approval(connection, approval).await,
                    PlanRecord::Use { token, run } => return use_approval(connection, now, token, run).await,
                    PlanRecord::Rule(rule) => store_rule(connection, rule).await?,
                }
                Ok(true)
            })
        }))
    }

    fn list_records<'a>(
        &'a self,
        filter: PlanFilter<'a>,
    ) -> LedgerFuture<'a, Vec<Result<StoredPlanRecord, DamagedPlan>>> {
        Box::pin(async move {
            match filter {
                PlanFilter::Plans(digest) => read_ledger!(self, list_plans, self.now(), digest),
                PlanFilter::Approvals(filter) => read_ledger!(self, list_approvals, filter),
                PlanFilter::Rules if self.supports_approval_rules() => read_ledger!(self, load_rules),
                PlanFilter::Rules => Ok(Vec::new()),
            }
        })
    }
}

async fn list_approvals(
    reader: &mut Connection,
    filter: ApprovalFilter<'_>,
) -> Result<Vec<Result<StoredPlanRecord, DamagedPlan>>, StatementError> {
    let condition = match filter {
        ApprovalFilter::Digest(_) => "approvals.digest = $1",
        ApprovalFilter::Run(_) => "approvals.token IN (SELECT token FROM approval_uses WHERE run = $1)",
    };
    let statement = format!("{SELECT_LAST_USES} WHERE {condition} ORDER BY approvals.key");
    let statement = query(sqlx::AssertSqlSafe(statement));
    let statement = match filter {
        ApprovalFilter::Digest(digest) => statement.bind(digest),
        ApprovalFilter::Run(run) => statement.bind(run.0),
    };
    let rows = statement.fetch_all(reader).await?;
    rows.iter().map(|row| approval_from_row(row).map(|approval| Ok(StoredPlanRecord::Approval(approval)))).collect()
}

/// Stores a plan, and deletes expired plans.
async fn store_plan(connection: &mut Connection, now: Now, plan: Plan) -> Result<(), StatementError> {
    let since = oldest_kept_plan_time(timestamp_from_micros(now.0)?);
    query("DELETE FROM plans WHERE at <= $1").bind(since.as_microsecond()).execute(&mut *connection).await?;
    let sum = plan_checksum(&plan).finish();
    let Plan { digest, record, at } = plan;
    query(
        "INSERT INTO plans (digest, record, at, sum) VALUES ($1, $2, $3, $4)
         ON CONFLICT (digest) DO UPDATE SET record = excluded.record, at = excluded.at, sum = excluded.sum",
    )
    .bind(digest)
    .bind(record)
    .bind(at.as_microsecond())
    .bind(sum)
    .execute(connection)
    .await?;
    Ok(())
}

/// The plans whose digests begin with this prefix. A damaged plan is returned as an error.
async fn list_plans(
    reader: &mut Connection,
    now: Now,
    digest: &str,
) -> Result<Vec<Result<StoredPlanRecord, DamagedPlan>>, StatementError> {
    let since = oldest_kept_plan_time(timestamp_from_micros(now.0)?);
    let rows = query("SELECT * FROM plans WHERE substr(digest, 1, length($1)) = $1 AND at > $2 ORDER BY at DESC")
        .bind(digest)
        .bind(since.as_microsecond())
        .fetch_all(reader)
        .await?;
    let read_plan = |row: &Record| {
        let at = row.try_get("at").ok().and_then(|at| timestamp_from_micros(at).ok());
        let damaged = |error| DamagedPlan { record: read_lossy(row, "record"), at, error };
        Ok(capture_damage(plan_from_row(row))?.map(StoredPlanRecord::Plan).map_err(damaged))
    };
    rows.iter().map(read_plan).collect()
}

pub(super) fn plan_from_row(row: &Record) -> Result<Plan, StatementError> {
    let (digest, record) = (row.try_get("digest")?, row.try_get("record")?);
    let plan = Plan { digest, record, at: timestamp_from_micros(row.try_get("at")?)? };
    match plan_checksum(&plan).matches(row.try_get("sum")?) {
        true => Ok(plan),
        false => Err(LedgerError::Damaged { what: format!("the plan {}", plan.digest) }.into()),
    }
}

async fn insert_approval(connection: &mut Connection, approval: Approval) -> Result<bool, StatementError> {
    let sum = approval_checksum(&approval).finish();
    let Approval { token, digest, by, up_to, at, until, standing } = approval;
    let inserted = query(
        "INSERT INTO approvals (token, digest, approved_by, up_to, at, until, standing, sum)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (token) DO NOTHING",
    )
    .bind(token)
    .bind(digest)
    .bind(by)
    .bind(to_signed(up_to))
    .bind(at.as_microsecond())
    .bind(until.as_microsecond())
    .bind(standing)
    .bind(sum)
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() > 0)
}

/// Checks and uses an approval in one write transaction, so that it cannot be used twice.
///
/// Returns `false` if the approval is not valid now. An approval that was used before is valid only if it is a standing
/// approval.
pub(super) async fn use_approval(
    connection: &mut Connection,
    now: Now,
    token: String,
    run: Option<RunId>,
) -> Result<bool, StatementError> {
    let at = timestamp_from_micros(now.0)?;
    let known = find_approval(&mut *connection, &token).await?;
    if !known.is_some_and(|known| known.is_valid(at)) {
        return Ok(false);
    }
    let used = ApprovalUse { at, run };
    query("INSERT INTO approval_uses (token, run, at, sum) VALUES ($1, $2, $3, $4)")
        .bind(&token)
        .bind(run.map(|run| run.0))
        .bind(at.as_microsecond())
        .bind(approval_use_checksum(&token, used).finish())
        .execute(connection)
        .await?;
    Ok(true)
}

async fn find_approval(connection: &mut Connection, token: &str) -> Result<Option<StoredApproval>, StatementError> {
    let statement = format!("{SELECT_LAST_USES} WHERE approvals.token = $1");
    let row = query(sqlx::AssertSqlSafe(statement)).bind(token).fetch_optional(connection).await?;
    row.as_ref().map(approval_from_row).transpose()
}

pub(super) fn approval_from_row(row: &Record) -> Result<StoredApproval, StatementError> {
    let approval = Approval {
        token: row.try_get("token")?,
        digest: row.try_get("digest")?,
        by: row.try_get("approved_by")?,
        up_to: to_unsigned(row.try_get("up_to")?),
        at: timestamp_from_micros(row.try_get("at")?)?,
        until: timestamp_from_micros(row.try_get("until")?)?,
        standing: row.try_get("standing")?,
    };
    let used = match row.try_get("used_at")? {
        None => None,
        Some(at) => {
            let run: Option<i64> = row.try_get("used_run")?;
            Some(ApprovalUse { at: timestamp_from_micros(at)?, run: run.map(RunId) })
        }
    };
    let is_intact = approval_checksum(&approval).matches(row.try_get("sum")?)
        && used.is_none_or(|used| {
            row.try_get("used_sum").is_ok_and(|sum| approval_use_checksum(&approval.token, used).matches(sum))
        });
    match is_intact {
        true => Ok(StoredApproval { approval, used }),
        false => Err(LedgerError::Damaged { what: format!("an approval of plan {}", approval.digest) }.into()),
    }
}

fn plan_checksum(plan: &Plan) -> Checksum {
    let Plan { digest, record, at } = plan;
    Checksum::for_table("plans").with_text(digest).with_text(record).with_number(at.as_microsecond())
}

fn approval_checksum(approval: &Approval) -> Checksum {
    let Approval { token, digest, by, up_to, at, until, standing } = approval;
    let sum = [token, digest, by].into_iter().fold(Checksum::for_table("approvals"), |sum, text| sum.with_text(text));
    sum.with_number(to_signed(*up_to))
        .with_number(at.as_microsecond())
        .with_number(until.as_microsecond())
        .with_number(*standing)
}

fn approval_use_checksum(token: &str, used: ApprovalUse) -> Checksum {
    let run = used.run.map_or(-1, |run| run.0);
    Checksum::for_table("approval_uses").with_text(token).with_number(run).with_number(used.at.as_microsecond())
}

/// The separator between hosts in the column `hosts`.
const HOST_SEPARATOR: &str = " ";

/// Lists all approval rules, each with the name of its account. An unreadable rule is listed as an error.
pub(super) async fn list_stored_rules(
    reader: &mut Connection,
) -> Result<Vec<(String, Result<StoredApprovalRule, StatementError>)>, StatementError> {
    let rows = query("SELECT * FROM approval_rules ORDER BY key").fetch_all(reader).await?;
    Ok(rows.iter().map(|row| (read_lossy(row, "account"), rule_from_row(row))).collect())
}

async fn load_rules(reader: &mut Connection) -> Result<Vec<Result<StoredPlanRecord, DamagedPlan>>, StatementError> {
    let rows = query("SELECT * FROM approval_rules ORDER BY key").fetch_all(reader).await?;
    rows.iter().map(|row| rule_from_row(row).map(|rule| Ok(StoredPlanRecord::Rule(rule)))).collect()
}

fn rule_from_row(row: &Record) -> Result<StoredApprovalRule, StatementError> {
    let hosts: String = row.try_get("hosts")?;
    let stored = StoredApprovalRule {
        account: row.try_get("account")?,
        gateway: row.try_get("gateway")?,
        hosts: hosts.split(HOST_SEPARATOR).map(str::to_owned).collect(),
        rule: row.try_get("rule")?,
        by: row.try_get("recorded_by")?,
        at: timestamp_from_micros(row.try_get("at")?)?,
    };
    match rule_checksum(&stored).matches(row.try_get("sum")?) {
        true => Ok(stored),
        false => Err(LedgerError::Damaged { what: format!("the approval rule for account {}", stored.account) }.into()),
    }
}

async fn store_rule(connection: &mut Connection, rule: StoredApprovalRule) -> Result<(), StatementError> {
    let sum = rule_checksum(&rule).finish();
    let StoredApprovalRule { account, gateway, hosts, rule, by, at } = rule;
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

fn rule_checksum(stored: &StoredApprovalRule) -> Checksum {
    let StoredApprovalRule { account, gateway, hosts, rule, by, at } = stored;
    let hosts = &hosts.join(HOST_SEPARATOR);
    let sum = [account, gateway, hosts, rule, by]
        .into_iter()
        .fold(Checksum::for_table("approval_rules"), |sum, text| sum.with_text(text));
    sum.with_number(at.as_microsecond())
}
