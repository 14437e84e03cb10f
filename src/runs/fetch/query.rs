//! A list that a database answers with: one prepared query in a transaction that can only read, its rows streamed.
//!
//! Values become text as the database itself writes them: numbers exactly, dates as ISO has them, nothing for NULL. Bytes are
//! no text, and refused.

use std::io::Write as _;
use std::str::FromStr as _;

use futures_util::TryStreamExt as _;
use jiff::civil::Date;
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{
    AssertSqlSafe, Column as _, ConnectOptions as _, Database, Decode, Executor as _, Row, SqlSafeStr as _,
    Statement as _, TypeInfo as _, ValueRef as _, raw_sql,
};

use super::bound::{LONG_ROW, LONG_VALUE, of_postgres, of_sqlite};
use super::question::with_date;
use super::spool::Spool;
use super::{Failed, secret, without};
use crate::audience::{CELL_LIMIT, RECORD_LIMIT};
use crate::manifest::ListQuery;

/// The name of the prepared query.
const NAME: &str = "campaign_list";

/// Why something of a database failed, before secrets are taken out of it.
enum Trouble {
    Database(sqlx::Error),
    Told(Failed),
}

impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<Failed> for Trouble {
    fn from(failed: Failed) -> Self {
        Self::Told(failed)
    }
}

pub(super) async fn fetch(wanted: &ListQuery, today: Date, spool: Spool) -> Result<Spool, Failed> {
    let address = secret(&wanted.from, "the database address (`from`)")?;
    let mut answer = Answer { out: csv::Writer::from_writer(spool), columns: Vec::new() };
    let kind = address.expose_secret().split(':').next().unwrap_or_default();
    let asked = match kind {
        "postgres" | "postgresql" => postgres(&address, wanted, today, &mut answer).await,
        "mysql" | "mariadb" => mysql(&address, wanted, today, &mut answer).await,
        "sqlite" => sqlite(&address, wanted, today, &mut answer).await,
        _ => Err(no_address(wanted).into()),
    };
    match asked {
        Ok(()) => answer.finish(),
        Err(Trouble::Told(failed)) => Err(failed),
        Err(Trouble::Database(sqlx::Error::Database(error))) if error.message().contains(LONG_ROW) => Err(long_row()),
        Err(Trouble::Database(error)) => Err(Failed::new(words(&error, &address))),
    }
}

async fn postgres(address: &SecretString, wanted: &ListQuery, today: Date, answer: &mut Answer) -> Result<(), Trouble> {
    let options = PgConnectOptions::from_str(address.expose_secret()).map_err(|_| no_address(wanted))?;
    let mut connection: PgConnection = options.connect().await?;
    let (sql, dates) = one(wanted, "$1")?;
    let limit = format!("SET statement_timeout = {}", wanted.timeout.as_millis());
    connection.execute(AssertSqlSafe(limit)).await?;
    connection.execute("SET datestyle = ISO; SET intervalstyle = iso_8601").await?;
    connection.execute("BEGIN READ ONLY").await?;
    let parameter = if dates > 0 { "(date)" } else { "" };
    let prepare = |sql: &str| AssertSqlSafe(format!("PREPARE {NAME} {parameter} AS {sql}"));
    // What cannot stand within another query is prepared as it is: the server refuses it, or answers with no long rows.
    connection.execute("SAVEPOINT campaign_query").await?;
    if sqlx::query(prepare(&of_postgres(&sql))).execute(&mut connection).await.is_err() {
        connection.execute("ROLLBACK TO SAVEPOINT campaign_query").await?;
        sqlx::query(prepare(&sql)).execute(&mut connection).await?;
    }
    let typed = sql.replace("$1", "$1::date");
    let shape = connection.prepare(AssertSqlSafe(typed).into_sql_str()).await?;
    let columns = shape.columns().iter().map(|column| (column.name().to_owned(), column.type_info().name().to_owned()));
    let columns: Vec<(String, String)> = columns.collect();
    answer.header(&columns)?;
    let call = if dates > 0 { format!("EXECUTE {NAME} ('{today}')") } else { format!("EXECUTE {NAME}") };
    // Without binding anything the server sends what it would print.
    let mut rows = raw_sql(AssertSqlSafe(call)).fetch(&mut connection);
    while let Some(row) = rows.try_next().await? {
        answer.record(columns.iter().enumerate().map(|(at, (_, kind))| {
            let text: Option<String> = row.try_get_unchecked(at)?;
            Ok(match (kind.as_str(), text.as_deref()) {
                ("BOOL", Some("t")) => "true".to_owned(),
                ("BOOL", Some("f")) => "false".to_owned(),
                _ => text.unwrap_or_default(),
            })
        }))?;
    }
    Ok(())
}

async fn mysql(address: &SecretString, wanted: &ListQuery, today: Date, answer: &mut Answer) -> Result<(), Trouble> {
    let address = address.expose_secret().replacen("mariadb:", "mysql:", 1);
    let options = MySqlConnectOptions::from_str(&address).map_err(|_| no_address(wanted))?;
    let mut connection: MySqlConnection = options.connect().await?;
    let (sql, dates) = one(wanted, "CAST(? AS DATE)")?;
    let shape = connection.prepare(AssertSqlSafe(sql.clone()).into_sql_str()).await?;
    let columns = shape.columns().iter().map(|column| (column.name().to_owned(), column.type_info().name().to_owned()));
    let columns: Vec<(String, String)> = columns.collect();
    answer.header(&columns)?;
    sqlx::query("SET @campaign_sql = ?").bind(sql).execute(&mut connection).await?;
    sqlx::query("SET @campaign_today = ?").bind(today.to_string()).execute(&mut connection).await?;
    raw_sql("START TRANSACTION READ ONLY").execute(&mut connection).await?;
    raw_sql(AssertSqlSafe(format!("PREPARE {NAME} FROM @campaign_sql"))).execute(&mut connection).await?;
    let dates = vec!["@campaign_today"; dates].join(", ");
    let using = if dates.is_empty() { String::new() } else { format!(" USING {dates}") };
    // What is called by its name is answered as text, as the server would print it.
    let mut rows = raw_sql(AssertSqlSafe(format!("EXECUTE {NAME}{using}"))).fetch(&mut connection);
    while let Some(row) = rows.try_next().await? {
        answer.record((0..columns.len()).map(|at| text_of(&row, at)))?;
    }
    Ok(())
}

async fn sqlite(address: &SecretString, wanted: &ListQuery, today: Date, answer: &mut Answer) -> Result<(), Trouble> {
    let options = SqliteConnectOptions::from_str(address.expose_secret()).map_err(|_| no_address(wanted))?;
    let mut connection: SqliteConnection = options.read_only(true).create_if_missing(false).connect().await?;
    let (sql, dates) = one(wanted, "?1")?;
    raw_sql("PRAGMA query_only = ON; BEGIN").execute(&mut connection).await?;
    let shape = connection.prepare(AssertSqlSafe(sql.clone()).into_sql_str()).await?;
    let columns = shape.columns().iter().map(|column| (column.name().to_owned(), String::new()));
    let columns: Vec<(String, String)> = columns.collect();
    answer.header(&columns)?;
    let bounded = of_sqlite(&sql, columns.len());
    // What cannot stand within another query is asked as it is, and refused there.
    let fits = connection.prepare(AssertSqlSafe(bounded.clone()).into_sql_str()).await.is_ok();
    let mut query = sqlx::query(AssertSqlSafe(if fits { bounded } else { sql }));
    if dates > 0 {
        query = query.bind(today.to_string());
    }
    let mut rows = query.fetch(&mut connection);
    while let Some(row) = rows.try_next().await? {
        answer.record((0..columns.len()).map(|at| value_of(&row, at, &columns)))?;
    }
    Ok(())
}

/// A value of SQLite, which has a type of its own in each row.
fn value_of(row: &SqliteRow, at: usize, columns: &[(String, String)]) -> Result<String, Trouble> {
    let value = row.try_get_raw(at)?;
    if value.is_null() {
        return Ok(String::new());
    }
    match value.type_info().name() {
        "INTEGER" => Ok(row.try_get_unchecked::<i64, _>(at)?.to_string()),
        "REAL" => Ok(row.try_get_unchecked::<f64, _>(at)?.to_string()),
        "BLOB" if row.try_get_unchecked::<&[u8], _>(at)? == LONG_VALUE => Err(long_value(&columns[at].0).into()),
        "BLOB" => Err(bytes(&columns[at].0).into()),
        _ => Ok(row.try_get_unchecked(at)?),
    }
}

/// A value that the server sent as text.
fn text_of<R: Row>(row: &R, at: usize) -> Result<String, Trouble>
where
    usize: sqlx::ColumnIndex<R>,
    for<'r> Option<String>: Decode<'r, R::Database> + sqlx::Type<R::Database>,
    R::Database: Database,
{
    Ok(row.try_get_unchecked::<Option<String>, _>(at)?.unwrap_or_default())
}

/// The list as it is written.
struct Answer {
    out: csv::Writer<Spool>,
    columns: Vec<String>,
}

impl Answer {
    /// Begins it; a column of bytes is refused.
    fn header(&mut self, columns: &[(String, String)]) -> Result<(), Failed> {
        if columns.is_empty() {
            return Err(Failed::new("the query returns no columns").help("write a `select` statement"));
        }
        let binary = |kind: &str| kind == "BYTEA" || kind.ends_with("BLOB") || kind.ends_with("BINARY");
        if let Some((name, _)) = columns.iter().find(|(_, kind)| binary(kind)) {
            return Err(bytes(name));
        }
        self.columns = columns.iter().map(|(name, _)| name.clone()).collect();
        self.out.write_record(&self.columns).map_err(unwritten)
    }

    fn record(&mut self, cells: impl Iterator<Item = Result<String, Trouble>>) -> Result<(), Trouble> {
        let mut length = 0;
        for (cell, column) in cells.zip(&self.columns) {
            let cell = cell?;
            length += cell.len() + 1;
            if cell.len() > CELL_LIMIT {
                return Err(long_value(column).into());
            }
            if length > RECORD_LIMIT {
                return Err(long_row().into());
            }
            self.out.write_field(cell).map_err(unwritten)?;
        }
        Ok(self.out.write_record(None::<&[u8]>).map_err(unwritten)?)
    }

    fn finish(self) -> Result<Spool, Failed> {
        let mut spool = self.out.into_inner().map_err(|error| Failed::from(error.into_error()))?;
        spool.flush()?;
        Ok(spool)
    }
}

/// The query with the database's own parameter for the date.
fn one(wanted: &ListQuery, parameter: &str) -> Result<(String, usize), Failed> {
    let several = || Failed::new("`sql` contains more than one statement").help("write a single `select` statement");
    with_date(&wanted.sql, parameter).ok_or_else(several)
}

fn bytes(column: &str) -> Failed {
    let help = "remove the column from the `select`, or convert it to text there";
    Failed::new(format!("the column `{column}` contains binary data instead of text")).help(help)
}

fn long_value(column: &str) -> Failed {
    let help = "remove the column from the `select`, or shorten its values there";
    Failed::new(format!("a value in the column `{column}` is larger than 64 KiB")).help(help)
}

fn long_row() -> Failed {
    Failed::new("a row is larger than 1 MiB").help("remove columns with long values from the `select`")
}

fn unwritten(error: csv::Error) -> Failed {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        _ => Failed::new("the result of the query cannot be converted to a list"),
    }
}

fn no_address(wanted: &ListQuery) -> Failed {
    let help = "use an address such as `postgres://user@host/database`, `mysql://…` or `sqlite:///path/to/file`";
    Failed::new(format!("{} does not contain a database address", wanted.from)).help(help)
}

/// What a database says, without its address and the password in it.
fn words(error: &sqlx::Error, address: &SecretString) -> String {
    let said = match error {
        sqlx::Error::Database(error) => format!("the database rejected the query: {}", error.message()),
        sqlx::Error::Io(error) => format!("cannot connect to the database: {error}"),
        sqlx::Error::Tls(error) => format!("cannot connect securely to the database: {error}"),
        error => format!("the query failed: {error}"),
    };
    let password = address.expose_secret().split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
    let password = password.and_then(|(user, _)| user.split_once(':')).map(|(_, password)| password);
    let decoded = password.map(|password| form_urlencoded::parse(password.as_bytes()).map(|(key, _)| key).collect());
    let said = without(&said, address);
    let said = without(&said, &SecretString::from(password.unwrap_or_default()));
    without(&said, &SecretString::from(decoded.unwrap_or(String::new())))
}
