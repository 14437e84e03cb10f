//! Queries about plans and approvals.

use sqlx::Row as _;

use super::change::{Failure, Now, intact};
use super::dialect::{Adapter, Connection, Record};
use super::look::look;
use super::runs::{self, instant, signed, unsigned};
use super::statement::{Statement, query, readable};
use crate::ledger::checksum::Checksum;
use crate::ledger::rules::plans_since;
use crate::ledger::{Approval, ApprovalUse, DamagedPlan, KeptApproval, LedgerError, LedgerFuture, Plan, Plans, RunId};

/// Approvals, each with the last use of it.
const APPROVALS: &str = "
    SELECT approvals.*, used.at AS used_at, used.run AS used_run, used.sum AS used_sum FROM approvals
    LEFT JOIN approval_uses used ON used.key = (SELECT max(key) FROM approval_uses WHERE token = approvals.token)";

impl Plans for Adapter {
    fn keep_plan(&self, plan: Plan) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(keep_plan(connection, now, plan.clone()))))
    }

    fn plans<'a>(&'a self, digest: &'a str) -> LedgerFuture<'a, Vec<Plan>> {
        let now = self.now();
        Box::pin(async move { look!(self, plans, now, digest) })
    }

    fn stored_plans(&self) -> LedgerFuture<'_, Vec<Result<Plan, DamagedPlan>>> {
        let now = self.now();
        Box::pin(async move { look!(self, stored_plans, now) })
    }

    fn approve(&self, approval: Approval) -> LedgerFuture<'_, bool> {
        Box::pin(self.write(move |connection, _| Box::pin(approve(connection, approval.clone()))))
    }

    fn approvals<'a>(&'a self, digest: &'a str) -> LedgerFuture<'a, Vec<KeptApproval>> {
        Box::pin(async move { look!(self, approvals_of_digest, digest) })
    }

    fn use_approval<'a>(&'a self, token: &'a str, run: Option<RunId>) -> LedgerFuture<'a, bool> {
        let token = token.to_owned();
        Box::pin(self.write(move |connection, now| Box::pin(use_approval(connection, now, token.clone(), run))))
    }

    fn open_approved<'a>(&'a self, run: RunId, replaced: Option<RunId>, token: &'a str) -> LedgerFuture<'a, bool> {
        let token = token.to_owned();
        Box::pin(self.write(move |connection, now| {
            let token = token.clone();
            Box::pin(async move {
                let approved = use_approval(&mut *connection, now, token, Some(run)).await?;
                if approved {
                    runs::open(connection, now, run, replaced).await?;
                }
                Ok(approved)
            })
        }))
    }

    fn approvals_of(&self, run: RunId) -> LedgerFuture<'_, Vec<KeptApproval>> {
        Box::pin(async move { look!(self, approvals_of_run, run) })
    }
}

async fn approvals_of_digest(reader: &mut Connection, digest: &str) -> Result<Vec<KeptApproval>, Failure> {
    let statement = format!("{APPROVALS} WHERE approvals.digest = $1 ORDER BY approvals.key");
    approvals(reader, query(sqlx::AssertSqlSafe(statement)).bind(digest)).await
}

async fn approvals_of_run(reader: &mut Connection, run: RunId) -> Result<Vec<KeptApproval>, Failure> {
    let statement = format!(
        "{APPROVALS} WHERE approvals.token IN (SELECT token FROM approval_uses WHERE run = $1) ORDER BY approvals.key"
    );
    approvals(reader, query(sqlx::AssertSqlSafe(statement)).bind(run.0)).await
}

async fn approvals(reader: &mut Connection, asked: Statement) -> Result<Vec<KeptApproval>, Failure> {
    asked.fetch_all(reader).await?.iter().map(approval).collect()
}

async fn keep_plan(connection: &mut Connection, now: Now, plan: Plan) -> Result<(), Failure> {
    let since = plans_since(instant(now.0)?);
    query("DELETE FROM plans WHERE at <= $1").bind(since.as_microsecond()).execute(&mut *connection).await?;
    let sum = plan_sum(&plan).finish();
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

async fn plans(reader: &mut Connection, now: Now, digest: &str) -> Result<Vec<Plan>, Failure> {
    plan_rows(reader, now, digest).await?.iter().map(plan).collect()
}

async fn stored_plans(reader: &mut Connection, now: Now) -> Result<Vec<Result<Plan, DamagedPlan>>, Failure> {
    let stored = |row: &Record| {
        let at = row.try_get("at").ok().and_then(|at| instant(at).ok());
        Ok(intact(plan(row))?.map_err(|error| DamagedPlan { record: readable(row, "record"), at, error }))
    };
    plan_rows(reader, now, "").await?.iter().map(stored).collect()
}

async fn plan_rows(reader: &mut Connection, now: Now, digest: &str) -> Result<Vec<Record>, Failure> {
    let since = plans_since(instant(now.0)?);
    let rows = query("SELECT * FROM plans WHERE substr(digest, 1, length($1)) = $1 AND at > $2 ORDER BY at DESC")
        .bind(digest)
        .bind(since.as_microsecond())
        .fetch_all(reader)
        .await?;
    Ok(rows)
}

pub(super) fn plan(row: &Record) -> Result<Plan, Failure> {
    let (digest, record) = (row.try_get("digest")?, row.try_get("record")?);
    let plan = Plan { digest, record, at: instant(row.try_get("at")?)? };
    match plan_sum(&plan).agrees(row.try_get("sum")?) {
        true => Ok(plan),
        false => Err(LedgerError::Damaged { what: format!("the plan {}", plan.digest) }.into()),
    }
}

async fn approve(connection: &mut Connection, approval: Approval) -> Result<bool, Failure> {
    let sum = approval_sum(&approval).finish();
    let Approval { token, digest, by, up_to, at, until, standing } = approval;
    let kept = query(
        "INSERT INTO approvals (token, digest, approved_by, up_to, at, until, standing, sum)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (token) DO NOTHING",
    )
    .bind(token)
    .bind(digest)
    .bind(by)
    .bind(signed(up_to))
    .bind(at.as_microsecond())
    .bind(until.as_microsecond())
    .bind(standing)
    .bind(sum)
    .execute(connection)
    .await?;
    Ok(kept.rows_affected() > 0)
}

/// Looks and uses in the one transaction that is written at a time, so that nobody comes between.
async fn use_approval(
    connection: &mut Connection,
    now: Now,
    token: String,
    run: Option<RunId>,
) -> Result<bool, Failure> {
    let at = instant(now.0)?;
    let known = one_approval(&mut *connection, &token).await?;
    if !known.is_some_and(|known| known.is_good(at)) {
        return Ok(false);
    }
    let used = ApprovalUse { at, run };
    query("INSERT INTO approval_uses (token, run, at, sum) VALUES ($1, $2, $3, $4)")
        .bind(&token)
        .bind(run.map(|run| run.0))
        .bind(at.as_microsecond())
        .bind(use_sum(&token, used).finish())
        .execute(connection)
        .await?;
    Ok(true)
}

async fn one_approval(connection: &mut Connection, token: &str) -> Result<Option<KeptApproval>, Failure> {
    let statement = format!("{APPROVALS} WHERE approvals.token = $1");
    let row = query(sqlx::AssertSqlSafe(statement)).bind(token).fetch_optional(connection).await?;
    row.as_ref().map(approval).transpose()
}

pub(super) fn approval(row: &Record) -> Result<KeptApproval, Failure> {
    let approval = Approval {
        token: row.try_get("token")?,
        digest: row.try_get("digest")?,
        by: row.try_get("approved_by")?,
        up_to: unsigned(row.try_get("up_to")?),
        at: instant(row.try_get("at")?)?,
        until: instant(row.try_get("until")?)?,
        standing: row.try_get("standing")?,
    };
    let used = match row.try_get("used_at")? {
        None => None,
        Some(at) => {
            let run: Option<i64> = row.try_get("used_run")?;
            Some(ApprovalUse { at: instant(at)?, run: run.map(RunId) })
        }
    };
    let whole = approval_sum(&approval).agrees(row.try_get("sum")?)
        && used.is_none_or(|used| row.try_get("used_sum").is_ok_and(|sum| use_sum(&approval.token, used).agrees(sum)));
    match whole {
        true => Ok(KeptApproval { approval, used }),
        false => Err(LedgerError::Damaged { what: format!("an approval of plan {}", approval.digest) }.into()),
    }
}

fn plan_sum(plan: &Plan) -> Checksum {
    let Plan { digest, record, at } = plan;
    Checksum::of("plans").text(digest).text(record).number(at.as_microsecond())
}

fn approval_sum(approval: &Approval) -> Checksum {
    let Approval { token, digest, by, up_to, at, until, standing } = approval;
    let sum = [token, digest, by].into_iter().fold(Checksum::of("approvals"), |sum, text| sum.text(text));
    sum.number(signed(*up_to)).number(at.as_microsecond()).number(until.as_microsecond()).number(*standing)
}

fn use_sum(token: &str, used: ApprovalUse) -> Checksum {
    let run = used.run.map_or(-1, |run| run.0);
    Checksum::of("approval_uses").text(token).number(run).number(used.at.as_microsecond())
}
