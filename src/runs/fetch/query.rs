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

use super::bound::{LONG_ROW, LONG_VALUE, bound_postgres_query, bound_sqlite_query};
use super::question::replace_date;
use super::spool::ListSpool;
use super::{FetchError, read_secret, redact_secret};
use crate::audience::{CELL_LIMIT, RECORD_LIMIT};
use crate::manifest::ListQuery;

/// The name of the prepared query.
const QUERY_NAME: &str = "campaign_list";

/// Why something of a database failed, before secrets are taken out of it.
enum QueryError {
    Database(sqlx::Error),
    Fetch(FetchError),
}

impl From<sqlx::Error> for QueryError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<FetchError> for QueryError {
    fn from(failed: FetchError) -> Self {
        Self::Fetch(failed)
    }
}

pub(super) async fn fetch_from_query(
    wanted: &ListQuery,
    today: Date,
    spool: ListSpool,
) -> Result<ListSpool, FetchError> {
    let address = read_secret(&wanted.from, "the database address (`from`)")?;
    let mut answer = ListWriter { out: csv::Writer::from_writer(spool), columns: Vec::new() };
    let kind = address.expose_secret().split(':').next().unwrap_or_default();
    let asked = match kind {
        "postgres" | "postgresql" => query_postgres(&address, wanted, today, &mut answer).await,
        "mysql" | "mariadb" => query_mysql(&address, wanted, today, &mut answer).await,
        "sqlite" => query_sqlite(&address, wanted, today, &mut answer).await,
        _ => Err(address_error(wanted).into()),
    };
    match asked {
        Ok(()) => answer.finish(),
        Err(QueryError::Fetch(failed)) => Err(failed),
        Err(QueryError::Database(sqlx::Error::Database(error))) if error.message().contains(LONG_ROW) => {
            Err(long_row_error())
        }
        Err(QueryError::Database(error)) => Err(FetchError::new(describe_error(&error, &address))),
    }
}

async fn query_postgres(
    address: &SecretString,
    wanted: &ListQuery,
    today: Date,
    answer: &mut ListWriter,
) -> Result<(), QueryError> {
    let options = PgConnectOptions::from_str(address.expose_secret()).map_err(|_| address_error(wanted))?;
    let mut connection: PgConnection = options.connect().await?;
    let (sql, dates) = bind_date(wanted, "$1")?;
    let limit = format!("SET statement_timeout = {}", wanted.timeout.as_millis());
    connection.execute(AssertSqlSafe(limit)).await?;
    connection.execute("SET datestyle = ISO; SET intervalstyle = iso_8601").await?;
    connection.execute("BEGIN READ ONLY").await?;
    let parameter = if dates > 0 { "(date)" } else { "" };
    let prepare = |sql: &str| AssertSqlSafe(format!("PREPARE {QUERY_NAME} {parameter} AS {sql}"));
    // What cannot stand within another query is prepared as it is: the server refuses it, or answers with no long rows.
    connection.execute("SAVEPOINT campaign_query").await?;
    if sqlx::query(prepare(&bound_postgres_query(&sql))).execute(&mut connection).await.is_err() {
        connection.execute("ROLLBACK TO SAVEPOINT campaign_query").await?;
        sqlx::query(prepare(&sql)).execute(&mut connection).await?;
    }
    let typed = sql.replace("$1", "$1::date");
    let shape = connection.prepare(AssertSqlSafe(typed).into_sql_str()).await?;
    let columns = shape.columns().iter().map(|column| (column.name().to_owned(), column.type_info().name().to_owned()));
    let columns: Vec<(String, String)> = columns.collect();
    answer.write_header(&columns)?;
    let call = if dates > 0 { format!("EXECUTE {QUERY_NAME} ('{today}')") } else { format!("EXECUTE {QUERY_NAME}") };
    // Without binding anything the server sends what it would print.
    let mut rows = raw_sql(AssertSqlSafe(call)).fetch(&mut connection);
    while let Some(row) = rows.try_next().await? {
        answer.write_record(columns.iter().enumerate().map(|(at, (_, kind))| {
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

async fn query_mysql(
    address: &SecretString,
    wanted: &ListQuery,
    today: Date,
    answer: &mut ListWriter,
) -> Result<(), QueryError> {
    let address = address.expose_secret().replacen("mariadb:", "mysql:", 1);
    let options = MySqlConnectOptions::from_str(&address).map_err(|_| address_error(wanted))?;
    let mut connection: MySqlConnection = options.connect().await?;
    let (sql, dates) = bind_date(wanted, "CAST(? AS DATE)")?;
    let shape = connection.prepare(AssertSqlSafe(sql.clone()).into_sql_str()).await?;
    let columns = shape.columns().iter().map(|column| (column.name().to_owned(), column.type_info().name().to_owned()));
    let columns: Vec<(String, String)> = columns.collect();
    answer.write_header(&columns)?;
    sqlx::query("SET @campaign_sql = ?").bind(sql).execute(&mut connection).await?;
    sqlx::query("SET @campaign_today = ?").bind(today.to_string()).execute(&mut connection).await?;
    raw_sql("START TRANSACTION READ ONLY").execute(&mut connection).await?;
    raw_sql(AssertSqlSafe(format!("PREPARE {QUERY_NAME} FROM @campaign_sql"))).execute(&mut connection).await?;
    let dates = vec!["@campaign_today"; dates].join(", ");
    let using = if dates.is_empty() { String::new() } else { format!(" USING {dates}") };
    // What is called by its name is answered as text, as the server would print it.
    let mut rows = raw_sql(AssertSqlSafe(format!("EXECUTE {QUERY_NAME}{using}"))).fetch(&mut connection);
    while let Some(row) = rows.try_next().await? {
        answer.write_record((0..columns.len()).map(|at| read_text(&row, at)))?;
    }
    Ok(())
}

async fn query_sqlite(
    address: &SecretString,
    wanted: &ListQuery,
    today: Date,
    answer: &mut ListWriter,
) -> Result<(), QueryError> {
    let options = SqliteConnectOptions::from_str(address.expose_secret()).map_err(|_| address_error(wanted))?;
    let mut connection: SqliteConnection = options.read_only(true).create_if_missing(false).connect().await?;
    let (sql, dates) = bind_date(wanted, "?1")?;
    raw_sql("PRAGMA query_only = ON; BEGIN").execute(&mut connection).await?;
    let shape = connection.prepare(AssertSqlSafe(sql.clone()).into_sql_str()).await?;
    let columns = shape.columns().iter().map(|column| (column.name().to_owned(), String::new()));
    let columns: Vec<(String, String)> = columns.collect();
    answer.write_header(&columns)?;
    let bounded = bound_sqlite_query(&sql, columns.len());
    // What cannot stand within another query is asked as it is, and refused there.
    let fits = connection.prepare(AssertSqlSafe(bounded.clone()).into_sql_str()).await.is_ok();
    let mut query = sqlx::query(AssertSqlSafe(if fits { bounded } else { sql }));
    if dates > 0 {
        query = query.bind(today.to_string());
    }
    let mut rows = query.fetch(&mut connection);
    while let Some(row) = rows.try_next().await? {
        answer.write_record((0..columns.len()).map(|at| read_value(&row, at, &columns)))?;
    }
    Ok(())
}

/// A value of SQLite, which has a type of its own in each row.
fn read_value(row: &SqliteRow, at: usize, columns: &[(String, String)]) -> Result<String, QueryError> {
    let value = row.try_get_raw(at)?;
    if value.is_null() {
        return Ok(String::new());
    }
    match value.type_info().name() {
        "INTEGER" => Ok(row.try_get_unchecked::<i64, _>(at)?.to_string()),
        "REAL" => Ok(row.try_get_unchecked::<f64, _>(at)?.to_string()),
        "BLOB" if row.try_get_unchecked::<&[u8], _>(at)? == LONG_VALUE => Err(long_value_error(&columns[at].0).into()),
        "BLOB" => Err(binary_column_error(&columns[at].0).into()),
        _ => Ok(row.try_get_unchecked(at)?),
    }
}

/// A value that the server sent as text.
fn read_text<R: Row>(row: &R, at: usize) -> Result<String, QueryError>
where
    usize: sqlx::ColumnIndex<R>,
    for<'r> Option<String>: Decode<'r, R::Database> + sqlx::Type<R::Database>,
    R::Database: Database,
{
    Ok(row.try_get_unchecked::<Option<String>, _>(at)?.unwrap_or_default())
}

/// The list as it is written.
struct ListWriter {
    out: csv::Writer<ListSpool>,
    columns: Vec<String>,
}

impl ListWriter {
    /// Begins it; a column of bytes is refused.
    fn write_header(&mut self, columns: &[(String, String)]) -> Result<(), FetchError> {
        if columns.is_empty() {
            return Err(FetchError::new("the query returns no columns").with_help("write a `select` statement"));
        }
        let binary = |kind: &str| kind == "BYTEA" || kind.ends_with("BLOB") || kind.ends_with("BINARY");
        if let Some((name, _)) = columns.iter().find(|(_, kind)| binary(kind)) {
            return Err(binary_column_error(name));
        }
        self.columns = columns.iter().map(|(name, _)| name.clone()).collect();
        self.out.write_record(&self.columns).map_err(write_error)
    }

    fn write_record(&mut self, cells: impl Iterator<Item = Result<String, QueryError>>) -> Result<(), QueryError> {
        let mut length = 0;
        for (cell, column) in cells.zip(&self.columns) {
            let cell = cell?;
            length += cell.len() + 1;
            if cell.len() > CELL_LIMIT {
                return Err(long_value_error(column).into());
            }
            if length > RECORD_LIMIT {
                return Err(long_row_error().into());
            }
            self.out.write_field(cell).map_err(write_error)?;
        }
        Ok(self.out.write_record(None::<&[u8]>).map_err(write_error)?)
    }

    fn finish(self) -> Result<ListSpool, FetchError> {
        let mut spool = self.out.into_inner().map_err(|error| FetchError::from(error.into_error()))?;
        spool.flush()?;
        Ok(spool)
    }
}

/// The query with the database's own parameter for the date.
fn bind_date(wanted: &ListQuery, parameter: &str) -> Result<(String, usize), FetchError> {
    let several =
        || FetchError::new("`sql` contains more than one statement").with_help("write a single `select` statement");
    replace_date(&wanted.sql, parameter).ok_or_else(several)
}

fn binary_column_error(column: &str) -> FetchError {
    let help = "remove the column from the `select`, or convert it to text there";
    FetchError::new(format!("the column `{column}` contains binary data instead of text")).with_help(help)
}

fn long_value_error(column: &str) -> FetchError {
    let help = "remove the column from the `select`, or shorten its values there";
    FetchError::new(format!("a value in the column `{column}` is larger than 64 KiB")).with_help(help)
}

fn long_row_error() -> FetchError {
    FetchError::new("a row is larger than 1 MiB").with_help("remove columns with long values from the `select`")
}

fn write_error(error: csv::Error) -> FetchError {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        _ => FetchError::new("the result of the query cannot be converted to a list"),
    }
}

fn address_error(wanted: &ListQuery) -> FetchError {
    let help = "use an address such as `postgres://user@host/database`, `mysql://…` or `sqlite:///path/to/file`";
    FetchError::new(format!("{} does not contain a database address", wanted.from)).with_help(help)
}

/// What a database says, without its address and the password in it.
fn describe_error(error: &sqlx::Error, address: &SecretString) -> String {
    let said = match error {
        sqlx::Error::Database(error) => format!("the database rejected the query: {}", error.message()),
        sqlx::Error::Io(error) => format!("cannot connect to the database: {error}"),
        sqlx::Error::Tls(error) => format!("cannot connect securely to the database: {error}"),
        error => format!("the query failed: {error}"),
    };
    let password = address.expose_secret().split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
    let password = password.and_then(|(user, _)| user.split_once(':')).map(|(_, password)| password);
    let decoded = password.map(|password| form_urlencoded::parse(password.as_bytes()).map(|(key, _)| key).collect());
    let said = redact_secret(&said, address);
    let said = redact_secret(&said, &SecretString::from(password.unwrap_or_default()));
    redact_secret(&said, &SecretString::from(decoded.unwrap_or(String::new())))
}
