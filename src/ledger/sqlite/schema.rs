//! The schema, one migration after another; a released one is never changed.

use std::cmp::Ordering;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{SqlSafeStr, SqliteConnection};

use super::{contacts, days, forgetting, spending};

/// The first schema.
///
/// Rows have no records of their own: an envelope holds its rows and what became of them, packed
/// (see `pack`). That is what makes a commit per envelope cheap. Only intents are indexed.
const FIRST: &str = "
    CREATE TABLE runs (
        key INTEGER PRIMARY KEY,
        campaign TEXT NOT NULL,
        number INTEGER NOT NULL,
        edition TEXT NOT NULL,
        gateway TEXT NOT NULL,
        account TEXT NOT NULL,
        endpoint TEXT NOT NULL,
        kind TEXT NOT NULL,
        live INTEGER NOT NULL,
        round INTEGER NOT NULL,
        recipients INTEGER NOT NULL,
        first_id INTEGER NOT NULL,
        ids INTEGER NOT NULL,
        began_at INTEGER NOT NULL,
        ended_at INTEGER,
        progress TEXT NOT NULL,
        stopped TEXT,
        exit INTEGER,
        counts TEXT,
        parts INTEGER,
        results TEXT,
        stop_requested INTEGER NOT NULL DEFAULT 0,
        owner INTEGER,
        UNIQUE (campaign, number)
    ) STRICT;

    CREATE TABLE left_out (
        run INTEGER NOT NULL REFERENCES runs (key),
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        rows BLOB NOT NULL
    ) STRICT;
    CREATE INDEX left_out_by_run ON left_out (run);

    CREATE TABLE envelopes (
        key INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (key),
        envelope INTEGER NOT NULL,
        owner INTEGER NOT NULL,
        begun_at INTEGER NOT NULL,
        first_row INTEGER NOT NULL,
        last_row INTEGER NOT NULL,
        rows BLOB NOT NULL,
        settled_at INTEGER,
        outcomes BLOB,
        evidence TEXT
    ) STRICT;
    CREATE UNIQUE INDEX envelopes_by_run ON envelopes (run, envelope);
    CREATE INDEX intents ON envelopes (run) WHERE settled_at IS NULL;

    CREATE TABLE accounts (
        name TEXT PRIMARY KEY,
        next_free INTEGER NOT NULL,
        share REAL NOT NULL,
        slowed_at INTEGER NOT NULL,
        not_before INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE profiles (
        name TEXT PRIMARY KEY,
        host TEXT NOT NULL
    ) STRICT;
";

/// Events about single rows, questions, orders of retries; checksums, and how often the ledger changed.
///
/// A checksum that is NULL belongs to a record from before there were any.
const SECOND: &str = "
    ALTER TABLE runs ADD COLUMN sum INTEGER;
    ALTER TABLE runs ADD COLUMN lag INTEGER;
    ALTER TABLE left_out ADD COLUMN sum INTEGER;
    ALTER TABLE envelopes ADD COLUMN rows_sum INTEGER;
    ALTER TABLE envelopes ADD COLUMN outcomes_sum INTEGER;

    CREATE TABLE events (
        key INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (key),
        row INTEGER NOT NULL,
        envelope INTEGER NOT NULL,
        at INTEGER NOT NULL,
        change BLOB NOT NULL,
        sum INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX events_by_run ON events (run);

    CREATE TABLE questions (
        run INTEGER NOT NULL REFERENCES runs (key),
        row INTEGER NOT NULL,
        asked INTEGER NOT NULL,
        negatives INTEGER NOT NULL,
        first_at INTEGER NOT NULL,
        last_at INTEGER NOT NULL,
        negative_at INTEGER,
        answer TEXT NOT NULL,
        PRIMARY KEY (run, row)
    ) STRICT;

    CREATE TABLE orders (
        run INTEGER NOT NULL REFERENCES runs (key),
        number INTEGER NOT NULL,
        first_id INTEGER NOT NULL,
        ids INTEGER NOT NULL,
        at INTEGER NOT NULL,
        sum INTEGER NOT NULL,
        PRIMARY KEY (run, number)
    ) STRICT;

    CREATE TABLE meta (
        id INTEGER NOT NULL,
        generation INTEGER NOT NULL
    ) STRICT;
    INSERT INTO meta VALUES (abs(random() % 9007199254740992), 0);
";

/// Questions know of which attempt they were; 0 is none.
const THIRD: &str = "ALTER TABLE questions ADD COLUMN envelope INTEGER NOT NULL DEFAULT 0";

/// An account's pace knows when it was written, so that a clock that was set back shows.
///
/// What was written before is taken as written when its last slot was free.
const FOURTH: &str = "
    ALTER TABLE accounts ADD COLUMN written_at INTEGER NOT NULL DEFAULT 0;
    UPDATE accounts SET written_at = next_free;
";

/// A run keeps why it stopped, and not what the command exited with that sent it.
///
/// A code that followed from the counts alone has no reason, even where words of an earlier stop stand beside it.
const FIFTH: &str = "
    ALTER TABLE runs ADD COLUMN stop TEXT;
    ALTER TABLE runs ADD COLUMN signal INTEGER;
    UPDATE runs SET signal = exit - 128 WHERE exit > 128;
    UPDATE runs SET stop = CASE
        WHEN exit > 128 THEN 'interrupted'
        WHEN exit = 74 THEN 'results_unwritten'
        WHEN exit = 7 THEN 'key_refused'
        WHEN exit = 6 THEN 'not_owner'
        WHEN exit = 5 AND stopped = 'the rows that were asked for are through' THEN 'limit'
        WHEN exit = 5 AND stopped IS NOT NULL THEN 'halted'
        WHEN exit = 1 THEN 'internal'
    END;
    ALTER TABLE runs DROP COLUMN exit;
";

/// Each envelope has a kind of its own; one that was recorded before has its run's.
const SIXTH: &str = "ALTER TABLE envelopes ADD COLUMN kind TEXT";

/// A run keeps the campaign file that it is of; of runs before that nobody knows it.
const SEVENTH: &str = "ALTER TABLE runs ADD COLUMN file TEXT";

/// Single messages share a run, whose rows processes draw in blocks: each is recorded with its identifiers and the
/// place where it was drawn, and has an epoch as long as somebody may have it.
///
/// What an earlier version left open of runs of single messages is over: nothing ever goes on with it.
const EIGHTH: &str = "
    ALTER TABLE runs ADD COLUMN shared INTEGER NOT NULL DEFAULT 0;
    UPDATE runs SET progress = 'finished', owner = NULL
        WHERE progress = 'open' AND campaign IN ('gateway.lookup', 'gateway.otp');

    CREATE TABLE blocks (
        run INTEGER NOT NULL REFERENCES runs (key),
        place INTEGER NOT NULL,
        first_row INTEGER NOT NULL,
        last_row INTEGER NOT NULL,
        first_id INTEGER NOT NULL,
        sum INTEGER NOT NULL,
        epoch INTEGER,
        PRIMARY KEY (run, first_row)
    ) STRICT;
    CREATE INDEX blocks_by_id ON blocks (first_id);
    CREATE INDEX blocks_in_hand ON blocks (run, place) WHERE epoch IS NOT NULL;
";

/// An account's pace knows the rate that was allowed last, and how many operations took room of it.
const PACE_USED: &str = "
    ALTER TABLE accounts ADD COLUMN rate REAL;
    ALTER TABLE accounts ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;
";

/// The suppression list: its records, of which none is ever deleted, and its version; and what each run heeds of it.
///
/// A purpose that is NULL belongs to a run from before there was any: a campaign's was marketing.
const OPT_OUTS: &str = "
    CREATE TABLE opt_outs (
        key INTEGER PRIMARY KEY,
        phone INTEGER NOT NULL,
        campaign TEXT NOT NULL,
        loopback INTEGER NOT NULL,
        reason TEXT NOT NULL,
        source TEXT NOT NULL,
        at INTEGER NOT NULL,
        removed_at INTEGER,
        removed_by TEXT,
        removed_why TEXT,
        sum INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX opt_outs_in_force ON opt_outs (phone, campaign, loopback) WHERE removed_at IS NULL;

    CREATE TABLE opt_out_list (version INTEGER NOT NULL) STRICT;
    INSERT INTO opt_out_list VALUES (0);

    ALTER TABLE runs ADD COLUMN purpose TEXT;
    ALTER TABLE runs ADD COLUMN loopback INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN opt_outs INTEGER NOT NULL DEFAULT 0;
";

/// Receipts are packed by the rows that they are about, `key` being the run's and, below 32 bits, a 32nd of the row.
///
/// A run counts how many it has, and how many its counts know of; of a run that ended before there were any, all.
const RECEIPTS: &str = "
    CREATE TABLE receipts (
        key INTEGER PRIMARY KEY,
        receipts BLOB NOT NULL,
        sum INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE hooks (
        address TEXT PRIMARY KEY,
        check_values TEXT NOT NULL
    ) STRICT;
    ALTER TABLE runs ADD COLUMN receipts INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN receipts_counted INTEGER NOT NULL DEFAULT 0;
";

/// Notifications that wait to be sent, and those that were.
const NOTIFICATIONS: &str = "
    CREATE TABLE notifications (
        key INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        occasion TEXT NOT NULL,
        way TEXT NOT NULL,
        notice TEXT NOT NULL,
        tries INTEGER NOT NULL DEFAULT 0,
        next_at INTEGER NOT NULL,
        taken_until INTEGER NOT NULL DEFAULT 0,
        done_at INTEGER,
        sent INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX notifications_waiting ON notifications (next_at) WHERE done_at IS NULL;
    CREATE INDEX notifications_done ON notifications (done_at) WHERE done_at IS NOT NULL;
";

/// What runs by itself: schedules that are armed, and what became of their occurrences. An occurrence has one record, ever.
const SCHEDULES: &str = "
    CREATE TABLE schedules (
        name TEXT PRIMARY KEY,
        file TEXT NOT NULL,
        digest TEXT NOT NULL,
        gateway TEXT NOT NULL,
        addresses TEXT NOT NULL,
        account TEXT NOT NULL,
        armed_by TEXT NOT NULL,
        armed_at INTEGER NOT NULL,
        since INTEGER NOT NULL,
        paused INTEGER NOT NULL,
        sum INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE occurrences (
        schedule TEXT NOT NULL,
        nominal TEXT NOT NULL,
        zone TEXT NOT NULL,
        at INTEGER NOT NULL,
        run INTEGER REFERENCES runs (key),
        reason TEXT,
        sum INTEGER NOT NULL,
        PRIMARY KEY (schedule, nominal, zone)
    ) STRICT;
    CREATE INDEX occurrences_by_time ON occurrences (schedule, at);
    CREATE INDEX occurrences_by_run ON occurrences (run) WHERE run IS NOT NULL;
";

/// A block knows when it was drawn: so many an hour may be allowed. Of one from before nobody knows it.
const DRAWN_AT: &str = "ALTER TABLE blocks ADD COLUMN drawn_at INTEGER";

/// What was looked at before it is sent, what of it was approved, and what each approval was used for. Approvals and their
/// uses are never deleted: a token that is brought again is known.
const PLANS: &str = "
    CREATE TABLE plans (
        digest TEXT PRIMARY KEY,
        record TEXT NOT NULL,
        at INTEGER NOT NULL,
        sum INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX plans_by_time ON plans (at);

    CREATE TABLE approvals (
        key INTEGER PRIMARY KEY,
        token TEXT NOT NULL UNIQUE,
        digest TEXT NOT NULL,
        approved_by TEXT NOT NULL,
        up_to INTEGER NOT NULL,
        at INTEGER NOT NULL,
        until INTEGER NOT NULL,
        standing INTEGER NOT NULL,
        sum INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX approvals_by_digest ON approvals (digest);

    CREATE TABLE approval_uses (
        key INTEGER PRIMARY KEY,
        token TEXT NOT NULL REFERENCES approvals (token),
        run INTEGER REFERENCES runs (key),
        at INTEGER NOT NULL,
        sum INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX approval_uses_by_token ON approval_uses (token);
    CREATE INDEX approval_uses_by_run ON approval_uses (run) WHERE run IS NOT NULL;
";

/// All migrations, the first first.
pub(super) fn migrations() -> Vec<Migration> {
    let steps = [
        ("runs, envelopes, accounts", FIRST),
        ("events, questions, orders, checksums", SECOND),
        ("questions about attempts", THIRD),
        ("pace and clocks", FOURTH),
        ("why a run stopped", FIFTH),
        ("the kind of an envelope", SIXTH),
        ("whose run it is", SEVENTH),
        ("shared runs", EIGHTH),
        ("what was used of a pace", PACE_USED),
        ("who opted out", OPT_OUTS),
        ("receipts", RECEIPTS),
        ("notifications", NOTIFICATIONS),
        ("schedules", SCHEDULES),
        ("when blocks were drawn", DRAWN_AT),
        ("plans and approvals", PLANS),
        ("what was spent", spending::TABLES),
        ("when numbers got messages", contacts::TABLES),
        ("how many left on each day", days::TABLES),
        ("who was forgotten", forgetting::TABLES),
        ("what was purged", forgetting::PURGED),
    ];
    let migration = |(version, (what, sql)): (i64, (&'static str, &'static str))| {
        Migration::new(version, what.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    (1..).zip(steps).map(migration).collect()
}

/// How the schema of a database stands to the newest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// There is nothing to do.
    Newest,
    /// It has to be brought to it first; a database without tables is the oldest.
    Older,
    /// It belongs to a newer version.
    Newer,
}

/// How old the schema of a database is; takes no turn to write.
pub(super) async fn age(connection: &mut SqliteConnection) -> sqlx::Result<Age> {
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'")
        .fetch_one(&mut *connection)
        .await?;
    if kept == 0 {
        return Ok(Age::Older);
    }
    let last: Option<i64> =
        sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations").fetch_one(connection).await?;
    let newest = i64::try_from(migrations().len()).unwrap_or(i64::MAX);
    Ok(match last.unwrap_or(0).cmp(&newest) {
        Ordering::Less => Age::Older,
        Ordering::Equal => Age::Newest,
        Ordering::Greater => Age::Newer,
    })
}

/// Brings the database to the newest schema, in the transaction that the caller began.
///
/// The turn to write is taken before anything is looked at: of two processes that open a new ledger at once
/// the second waits, and finds the first one's tables.
pub(super) async fn migrate(connection: &mut SqliteConnection) -> Result<(), MigrateError> {
    Migrator::with_migrations(migrations()).run(connection).await
}
