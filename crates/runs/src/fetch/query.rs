//! Lists from a database: one prepared query in a read-only transaction, with streamed rows.
//!
//! Values become text as the database writes them: exact numbers, ISO dates, an empty cell for NULL. Binary columns are
//! refused.
//!
//! The database itself limits the length of rows, because the drivers read a whole row before it can be checked here.
//! MySQL needs no such limit: no row is longer than its `max_allowed_packet`, 64 MiB by default.

use std::fmt::Write as _;
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

use super::{FetchError, ListSpool, read_secret, redact_secret};
use campaign_content::audience::{CELL_LIMIT, RECORD_LIMIT};
use campaign_manifest::ListQuery;

/// The name of the prepared query.
const QUERY_NAME: &str = "campaign_list";

/// An error of a query, before secrets are removed from it.
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

/// Runs the query and stores the rows as CSV. `:today` in the query is replaced by `today`.
pub(super) async fn fetch_from_query(
    source: &ListQuery,
    today: Date,
    spool: ListSpool,
) -> Result<ListSpool, FetchError> {
    let address = read_secret(&source.from, "the database address (`from`)")?;
    let mut writer = ListWriter { out: csv::Writer::from_writer(spool), columns: Vec::new() };
    let kind = address.expose_secret().split(':').next().unwrap_or_default();
    let result = match kind {
        "postgres" | "postgresql" => query_postgres(&address, source, today, &mut writer).await,
        "mysql" | "mariadb" => query_mysql(&address, source, today, &mut writer).await,
        "sqlite" => query_sqlite(&address, source, today, &mut writer).await,
        _ => Err(address_error(source).into()),
    };
    match result {
        Ok(()) => writer.finish(),
        Err(QueryError::Fetch(failed)) => Err(failed),
        Err(QueryError::Database(sqlx::Error::Database(error))) if error.message().contains(LONG_ROW) => {
            Err(long_row_error())
        }
        Err(QueryError::Database(error)) => Err(FetchError::new(describe_error(&error, &address))),
    }
}

async fn query_postgres(
    address: &SecretString,
    source: &ListQuery,
    today: Date,
    writer: &mut ListWriter,
) -> Result<(), QueryError> {
    let options = PgConnectOptions::from_str(address.expose_secret()).map_err(|_| address_error(source))?;
    let mut connection: PgConnection = options.connect().await?;
    let (sql, dates) = bind_date(source, "$1")?;
    let limit = format!("SET statement_timeout = {}", source.timeout.as_millis());
    connection.execute(AssertSqlSafe(limit)).await?;
    connection.execute("SET datestyle = ISO; SET intervalstyle = iso_8601").await?;
    connection.execute("BEGIN READ ONLY").await?;
    let parameter = if dates > 0 { "(date)" } else { "" };
    let prepare = |sql: &str| AssertSqlSafe(format!("PREPARE {QUERY_NAME} {parameter} AS {sql}"));
    // A query that cannot be nested is prepared as it is: either the server refuses it, or it returns only short rows.
    connection.execute("SAVEPOINT campaign_query").await?;
    if sqlx::query(prepare(&wrap_postgres_query(&sql))).execute(&mut connection).await.is_err() {
        connection.execute("ROLLBACK TO SAVEPOINT campaign_query").await?;
        sqlx::query(prepare(&sql)).execute(&mut connection).await?;
    }
    let typed = sql.replace("$1", "$1::date");
    let query = connection.prepare(AssertSqlSafe(typed).into_sql_str()).await?;
    let columns = query.columns().iter().map(|column| (column.name().to_owned(), column.type_info().name().to_owned()));
    let columns: Vec<(String, String)> = columns.collect();
    writer.write_header(&columns)?;
    let call = if dates > 0 { format!("EXECUTE {QUERY_NAME} ('{today}')") } else { format!("EXECUTE {QUERY_NAME}") };
    // Without bound values, the server sends text.
    let mut rows = raw_sql(AssertSqlSafe(call)).fetch(&mut connection);
    while let Some(row) = rows.try_next().await? {
        writer.write_record(columns.iter().enumerate().map(|(at, (_, kind))| {
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
    source: &ListQuery,
    today: Date,
    writer: &mut ListWriter,
) -> Result<(), QueryError> {
    let address = address.expose_secret().replacen("mariadb:", "mysql:", 1);
    let options = MySqlConnectOptions::from_str(&address).map_err(|_| address_error(source))?;
    let mut connection: MySqlConnection = options.connect().await?;
    let (sql, dates) = bind_date(source, "CAST(? AS DATE)")?;
    let query = connection.prepare(AssertSqlSafe(sql.clone()).into_sql_str()).await?;
    let columns = query.columns().iter().map(|column| (column.name().to_owned(), column.type_info().name().to_owned()));
    let columns: Vec<(String, String)> = columns.collect();
    writer.write_header(&columns)?;
    sqlx::query("SET @campaign_sql = ?").bind(sql).execute(&mut connection).await?;
    sqlx::query("SET @campaign_today = ?").bind(today.to_string()).execute(&mut connection).await?;
    raw_sql("START TRANSACTION READ ONLY").execute(&mut connection).await?;
    raw_sql(AssertSqlSafe(format!("PREPARE {QUERY_NAME} FROM @campaign_sql"))).execute(&mut connection).await?;
    let dates = vec!["@campaign_today"; dates].join(", ");
    let using = if dates.is_empty() { String::new() } else { format!(" USING {dates}") };
    // A prepared query that is executed by name returns text, as the server prints it.
    let mut rows = raw_sql(AssertSqlSafe(format!("EXECUTE {QUERY_NAME}{using}"))).fetch(&mut connection);
    while let Some(row) = rows.try_next().await? {
        writer.write_record((0..columns.len()).map(|at| read_text(&row, at)))?;
    }
    Ok(())
}

async fn query_sqlite(
    address: &SecretString,
    source: &ListQuery,
    today: Date,
    writer: &mut ListWriter,
) -> Result<(), QueryError> {
    let options = SqliteConnectOptions::from_str(address.expose_secret()).map_err(|_| address_error(source))?;
    let mut connection: SqliteConnection = options.read_only(true).create_if_missing(false).connect().await?;
    let (sql, dates) = bind_date(source, "?1")?;
    raw_sql("PRAGMA query_only = ON; BEGIN").execute(&mut connection).await?;
    let statement = connection.prepare(AssertSqlSafe(sql.clone()).into_sql_str()).await?;
    let columns = statement.columns().iter().map(|column| (column.name().to_owned(), String::new()));
    let columns: Vec<(String, String)> = columns.collect();
    writer.write_header(&columns)?;
    let bounded = wrap_sqlite_query(&sql, columns.len());
    // A query that cannot be nested is sent unchanged, so that SQLite's error is about the query as written.
    let can_be_nested = connection.prepare(AssertSqlSafe(bounded.clone()).into_sql_str()).await.is_ok();
    let mut query = sqlx::query(AssertSqlSafe(if can_be_nested { bounded } else { sql }));
    if dates > 0 {
        query = query.bind(today.to_string());
    }
    let mut rows = query.fetch(&mut connection);
    while let Some(row) = rows.try_next().await? {
        writer.write_record((0..columns.len()).map(|at| read_value(&row, at, &columns)))?;
    }
    Ok(())
}

/// Reads an SQLite value, whose type can differ from row to row.
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

/// Reads a value that the server sent as text.
fn read_text<R: Row>(row: &R, at: usize) -> Result<String, QueryError>
where
    usize: sqlx::ColumnIndex<R>,
    for<'r> Option<String>: Decode<'r, R::Database> + sqlx::Type<R::Database>,
    R::Database: Database,
{
    Ok(row.try_get_unchecked::<Option<String>, _>(at)?.unwrap_or_default())
}

/// The writer of the fetched list.
struct ListWriter {
    out: csv::Writer<ListSpool>,
    columns: Vec<String>,
}

impl ListWriter {
    /// Writes the header from the names and types of the columns. Binary columns are refused.
    fn write_header(&mut self, columns: &[(String, String)]) -> Result<(), FetchError> {
        if columns.is_empty() {
            return Err(FetchError::new("the query returns no columns").with_help("write a `select` statement"));
        }
        let is_binary = |kind: &str| kind == "BYTEA" || kind.ends_with("BLOB") || kind.ends_with("BINARY");
        if let Some((name, _)) = columns.iter().find(|(_, kind)| is_binary(kind)) {
            return Err(binary_column_error(name));
        }
        self.columns = columns.iter().map(|(name, _)| name.clone()).collect();
        self.out.write_record(&self.columns).map_err(csv_write_error)
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
            self.out.write_field(cell).map_err(csv_write_error)?;
        }
        Ok(self.out.write_record(None::<&[u8]>).map_err(csv_write_error)?)
    }

    fn finish(self) -> Result<ListSpool, FetchError> {
        let mut spool = self.out.into_inner().map_err(|error| FetchError::from(error.into_error()))?;
        spool.flush()?;
        Ok(spool)
    }
}

/// Returns the query with each `:today` replaced by the database's parameter syntax, and the number of replacements.
fn bind_date(source: &ListQuery, parameter: &str) -> Result<(String, usize), FetchError> {
    let multiple_statements_error =
        || FetchError::new("`sql` contains more than one statement").with_help("write a single `select` statement");
    replace_date(&source.sql, parameter).ok_or_else(multiple_statements_error)
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

fn csv_write_error(error: csv::Error) -> FetchError {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        _ => FetchError::new("the query result cannot be converted to a list"),
    }
}

fn address_error(source: &ListQuery) -> FetchError {
    let help = "use an address such as `postgres://user@host/database`, `mysql://…` or `sqlite:///path/to/file`";
    FetchError::new(format!("{} does not contain a database address", source.from)).with_help(help)
}

/// Describes a database error without the address and the password.
fn describe_error(error: &sqlx::Error, address: &SecretString) -> String {
    let message = match error {
        sqlx::Error::Database(error) => format!("the database rejected the query: {}", error.message()),
        sqlx::Error::Io(error) => format!("cannot connect to the database: {error}"),
        sqlx::Error::Tls(error) => format!("cannot connect securely to the database: {error}"),
        error => format!("the query failed: {error}"),
    };
    let password = address.expose_secret().split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
    let password = password.and_then(|(user, _)| user.split_once(':')).map(|(_, password)| password);
    let decoded = password.map(|password| form_urlencoded::parse(password.as_bytes()).map(|(key, _)| key).collect());
    let message = redact_secret(&message, address);
    let message = redact_secret(&message, &SecretString::from(password.unwrap_or_default()));
    redact_secret(&message, &SecretString::from(decoded.unwrap_or(String::new())))
}

/// The date parameter of a query.
const DATE_PARAMETER: &str = ":today";

/// Replaces each `:today` in a query with `replacement`, and returns the new query and the number of replacements.
/// Returns `None` if `sql` contains more than one statement.
pub(super) fn replace_date(sql: &str, replacement: &str) -> Option<(String, usize)> {
    let (mut text, mut dates, mut rest) = (String::with_capacity(sql.len()), 0, sql);
    while !rest.is_empty() {
        let token = next_token(rest);
        rest = &rest[token.len()..];
        match token {
            DATE_PARAMETER => {
                text += replacement;
                dates += 1;
            }
            ";" => return is_blank(rest).then_some((text, dates)),
            token => text += token,
        }
    }
    Some((text, dates))
}

/// Returns the next token of a query: a string, quoted name, comment, cast or parameter, or else a single character.
fn next_token(rest: &str) -> &str {
    let until = |from: usize, end: &str| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
    let length = match rest.as_bytes() {
        [b'\'' | b'"' | b'`', ..] => until(1, &rest[..1]),
        [b'-', b'-', ..] => until(2, "\n"),
        [b'/', b'*', ..] => until(2, "*/"),
        // A PostgreSQL cast.
        [b':', b':', ..] => 2,
        [b':', ..] => 1 + rest[1..].find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len() - 1),
        [b'$', ..] => dollar_quoted_length(rest).unwrap_or(1),
        _ => rest.chars().next().map_or(0, char::len_utf8),
    };
    &rest[..length]
}

/// Returns the length of the PostgreSQL dollar-quoted string (`$tag$…$tag$`) at the start of `rest`, if there is one.
fn dollar_quoted_length(rest: &str) -> Option<usize> {
    let tag = &rest[..rest[1..].find('$')? + 2];
    let name = &tag[1..tag.len() - 1];
    let is_tag =
        name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| rest[tag.len()..].find(tag).map_or(rest.len(), |at| tag.len() * 2 + at))
}

/// Whether `rest` contains only comments and whitespace, and after them only semicolons and whitespace.
fn is_blank(rest: &str) -> bool {
    let mut rest = rest.trim_start();
    while rest.starts_with("--") || rest.starts_with("/*") {
        rest = rest[next_token(rest).len()..].trim_start();
    }
    rest.trim_end_matches([';', ' ', '\n', '\r', '\t']).is_empty()
}

/// The error message of PostgreSQL about a row that is too long.
pub(super) const LONG_ROW: &str = "campaign: a row is too long";
/// The value that SQLite returns instead of a value that is too long.
pub(super) const LONG_VALUE: &[u8] = b"campaign: too long";

/// Wraps a PostgreSQL query so that it fails with [`LONG_ROW`] if a row is too long.
///
/// `OFFSET 0` keeps the server from evaluating rows that the query itself omits, and from reordering the rows. The text
/// form of a row contains extra quotes, at most as many as the row has characters, so rows within [`RECORD_LIMIT`]
/// always pass.
pub(super) fn wrap_postgres_query(sql: &str) -> String {
    let max_length = 4 * RECORD_LIMIT;
    format!(
        "SELECT campaign_row.* FROM (SELECT * FROM (\n{sql}\n) AS campaign_query OFFSET 0) AS campaign_row \
         WHERE CASE WHEN octet_length(campaign_row::text) <= {max_length} THEN true \
         ELSE (left(campaign_row::text, 0) || '{LONG_ROW}')::boolean END"
    )
}

/// Wraps an SQLite query so that it returns [`LONG_VALUE`] instead of values that are too long. SQLite knows the length
/// of a value without reading it.
pub(super) fn wrap_sqlite_query(sql: &str, columns: usize) -> String {
    let marker = LONG_VALUE.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
    let limit_cell =
        |name: &String| format!("CASE WHEN octet_length({name}) > {CELL_LIMIT} THEN x'{marker}' ELSE {name} END");
    let cells: Vec<String> = names.iter().map(limit_cell).collect();
    format!("WITH campaign_list ({}) AS (\n{sql}\n) SELECT {} FROM campaign_list", names.join(", "), cells.join(", "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn date_is_replaced_only_where_it_is_a_parameter() {
        for (sql, expected) in [
            ("select * from t where d = :today", Some(("select * from t where d = ?", 1))),
            ("select :today, ':today', \":today\" -- :today", Some(("select ?, ':today', \":today\" -- :today", 1))),
            ("select x::text, '2026'::today from t", Some(("select x::text, '2026'::today from t", 0))),
            ("select :todays, a:=:today", Some(("select :todays, a:=?", 1))),
            ("select $$ ; :today $$, $a$ ; $a$;", Some(("select $$ ; :today $$, $a$ ; $a$", 0))),
            ("select 'it''s ;' /* ; */ ; -- end", Some(("select 'it''s ;' /* ; */ ", 0))),
            ("select 1; drop table people", None),
            ("select 1;;", Some(("select 1", 0))),
            ("select 'щ' || :today", Some(("select 'щ' || ?", 1))),
        ] {
            let replaced = replace_date(sql, "?");
            assert_eq!(replaced.as_ref().map(|(text, dates)| (text.as_str(), *dates)), expected, "{sql}");
        }
    }

    proptest! {
        #[test]
        fn query_without_the_date_is_unchanged(sql in "[-a:'\"$;/*щ\n ]{0,40}") {
            if let Some((text, dates)) = replace_date(&sql, "?") {
                prop_assert!(dates > 0 || sql.starts_with(&text));
            }
        }
    }
}

#[cfg(test)]
mod bound_tests {
    use super::*;

    #[test]
    fn query_is_wrapped_in_parentheses_on_its_own_line() {
        let sql = "select 1 -- one";
        for bounded in [wrap_postgres_query(sql), wrap_sqlite_query(sql, 1)] {
            assert!(bounded.contains("(\nselect 1 -- one\n)"), "{bounded}");
        }
    }

    #[test]
    fn sqlite_query_can_have_unnamed_columns() {
        let bounded = wrap_sqlite_query("select 1, 1", 2);
        assert!(bounded.starts_with("WITH campaign_list (c0, c1) AS"), "{bounded}");
        assert_eq!(bounded.matches("THEN x'63616d706169676e3a20746f6f206c6f6e67'").count(), 2, "{bounded}");
    }
}
