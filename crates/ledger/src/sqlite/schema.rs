//! Schema migrations of the SQLite ledger. Released migrations never change.

use std::cmp::Ordering;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{SqlSafeStr, SqliteConnection};

/// All migrations in order.
pub(super) fn migrations() -> Vec<Migration> {
    let steps = [
        ("runs, envelopes, accounts", FIRST),
        ("events, questions, orders, checksums", SECOND),
        ("questions about attempts", THIRD),
        ("rate and clocks", FOURTH),
        ("the reason why a run stopped", FIFTH),
        ("the kind of an envelope", SIXTH),
        ("the owner of a run", SEVENTH),
        ("shared runs", EIGHTH),
        ("the used rate", RATE_LIMIT_USE),
        ("opt-outs", OPT_OUTS),
        ("receipts", RECEIPTS),
        ("notifications", NOTIFICATIONS),
        ("schedules", SCHEDULES),
        ("the time when blocks were drawn", DRAWN_AT),
        ("plans and approvals", PLANS),
        ("spending", SPENDING),
        ("the times of messages to numbers", CONTACTS),
        ("messages per day", DAYS),
        ("forgotten recipients", FORGETTING),
        ("purged runs", PURGED),
        ("the origin of a restored ledger", BACKUP),
        ("shares", SHARES),
        ("figures of runs", FIGURES),
        ("channels of pipelines", CHAINS),
        ("approval rules of accounts", APPROVAL_RULES),
        ("recent single messages", REPEATS),
        ("evidence of consent", CONSENTS),
        ("scopes of opt-outs", SCOPES),
    ];
    let to_migration = |(version, (description, sql)): (i64, (&'static str, &'static str))| {
        Migration::new(version, description.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    (1..).zip(steps).map(to_migration).collect()
}

/// The age of a schema compared with the newest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaAge {
    /// No upgrade is needed.
    Newest,
    /// The schema must be upgraded; a database without tables is the oldest.
    Older,
    /// The schema belongs to a newer version.
    Newer,
}

/// The first version with channels of pipelines in envelopes.
pub(super) const WITH_CHAINS: i64 = 24;

/// The schema version of a database; 0 if the database has no tables. Does not need the write lock.
pub(super) async fn load_version(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'")
        .fetch_one(&mut *connection)
        .await?;
    if count == 0 {
        return Ok(0);
    }
    let last: Option<i64> =
        sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations").fetch_one(connection).await?;
    Ok(last.unwrap_or(0))
}

/// Refuses a damaged definition of a table: the driver panics if the name of a column is not UTF-8.
async fn check_definitions(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    let texts: Vec<Vec<u8>> = sqlx::query_scalar("SELECT CAST(sql AS BLOB) FROM sqlite_schema WHERE sql IS NOT NULL")
        .fetch_all(connection)
        .await?;
    match texts.iter().all(|text| str::from_utf8(text).is_ok()) {
        true => Ok(()),
        false => Err(sqlx::Error::Protocol("the definition of a table is damaged".to_owned())),
    }
}

/// Compares the schema of a database with the newest one. Does not need the write lock.
pub(super) async fn load_schema_age(connection: &mut SqliteConnection) -> sqlx::Result<SchemaAge> {
    check_definitions(connection).await?;
    let newest = i64::try_from(migrations().len()).unwrap_or(i64::MAX);
    Ok(match load_version(connection).await?.cmp(&newest) {
        Ordering::Less => SchemaAge::Older,
        Ordering::Equal => SchemaAge::Newest,
        Ordering::Greater => SchemaAge::Newer,
    })
}

/// Upgrades the database to the newest schema within the caller's transaction.
///
/// The caller already holds the write lock. If two processes open a new ledger, the second one waits and then finds the
/// tables that the first one created.
pub(super) async fn run_migrations(connection: &mut SqliteConnection) -> Result<(), MigrateError> {
    Migrator::with_migrations(migrations()).run(connection).await
}

/// The suppression list, its version, and the policy of each run. Entries are never deleted.
///
/// A NULL purpose belongs to a run of an earlier version, in which all campaigns were marketing.
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

/// Receipts are packed by rows. `key` combines the run with the row divided by 32 in the lower 32 bits.
///
/// A run has the number of its receipts, and the number of receipts that its state counts include.
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

/// The queue of notifications.
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

/// Active schedules and the outcomes of their occurrences. Each occurrence has exactly one record.
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

/// Plans, approvals, and their uses. Approvals and uses are never deleted, so that a used token stays known.
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

/// Contact times by number, the gateways with an index, and when each index was last cleaned.
const CONTACTS: &str = "
    CREATE TABLE contacts (
        phone INTEGER NOT NULL,
        loopback INTEGER NOT NULL,
        at INTEGER NOT NULL,
        run INTEGER NOT NULL,
        envelope INTEGER NOT NULL,
        row INTEGER NOT NULL,
        PRIMARY KEY (phone, loopback, at, run, envelope, row)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE contacts_kept (
        loopback INTEGER PRIMARY KEY,
        cleared_at INTEGER NOT NULL
    ) STRICT;
";

/// The key for hashing forgotten numbers, whether freed space is overwritten, and the rows that still must be removed
/// from copies and results.
const FORGETTING: &str = "
    CREATE TABLE forgetting (
        key BLOB NOT NULL,
        swept INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE forgotten_rows (
        run INTEGER NOT NULL REFERENCES runs (key),
        row INTEGER NOT NULL,
        waits INTEGER NOT NULL,
        PRIMARY KEY (run, row)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX forgotten_rows_waiting ON forgotten_rows (run) WHERE waits = 1;
";

/// The time of a run's purge, and the hashes of the numbers that had a message of the run.
const PURGED: &str = "
    ALTER TABLE runs ADD COLUMN purged_at INTEGER;
    CREATE TABLE guarded (
        run INTEGER PRIMARY KEY REFERENCES runs (key),
        numbers BLOB NOT NULL,
        sum INTEGER NOT NULL
    ) STRICT;
";

/// Whether a ledger is a backup or was restored from one.
const BACKUP: &str = "
    CREATE TABLE backup (
        made_at INTEGER NOT NULL,
        restored_at INTEGER
    ) STRICT;
";

/// The `approval` rules of accounts. Profiles that were only used through loopback keep loopback as their host. Runs
/// without a suppression policy are marked as loopback runs if their account is a loopback address.
const APPROVAL_RULES: &str = "
    CREATE TABLE approval_rules (
        key INTEGER PRIMARY KEY,
        account TEXT NOT NULL,
        gateway TEXT NOT NULL,
        hosts TEXT NOT NULL,
        rule TEXT NOT NULL,
        recorded_by TEXT NOT NULL,
        at INTEGER NOT NULL,
        sum INTEGER NOT NULL
    ) STRICT;
    UPDATE runs SET loopback = 1 FROM (SELECT key AS of, replace(account, gateway || '@', '') AS host FROM runs) AS hosts
        WHERE key = of AND purpose IS NULL AND live AND (
            host IN ('localhost', '[::1]') OR host LIKE 'localhost:%' OR host LIKE '[::1]:%'
            OR (host LIKE '127.%' AND host NOT GLOB '*[^0-9.:]*'));
    INSERT INTO profiles (name, host) SELECT DISTINCT gateway, 'loopback' FROM runs WHERE live AND loopback
        ON CONFLICT (name) DO NOTHING;
";

/// Recent single messages: a hash with the ledger's key, and when it expires.
const REPEATS: &str = "
    CREATE TABLE repeats (
        hash BLOB PRIMARY KEY,
        until INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE repeat_key (key BLOB NOT NULL) STRICT;
";

/// Evidence of consent, packed by rows.
const CONSENTS: &str = "
    CREATE TABLE consents (
        run INTEGER NOT NULL REFERENCES runs (key),
        first_row INTEGER NOT NULL,
        last_row INTEGER NOT NULL,
        records BLOB NOT NULL,
        sum INTEGER NOT NULL,
        PRIMARY KEY (run, first_row)
    ) STRICT;
";

/// Opt-outs from all messages, and runs whose messages must arrive. Runs that were planned earlier are checked against
/// the list again. The index is used to count a run's opt-outs while the run is sent.
const SCOPES: &str = "
    UPDATE opt_out_list SET version = version + 1;
    CREATE INDEX opt_outs_by_source ON opt_outs (source) WHERE removed_at IS NULL;
";

/// The first schema.
///
/// Rows have no records of their own: an envelope holds its rows and their outcomes, packed (see `encoding.rs`). This
/// makes a commit per envelope cheap. Only open intents have an index of their own.
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

/// Row events, questions, retry orders, checksums, and the generation of the ledger.
///
/// A NULL checksum belongs to a record that is older than the checksums.
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

/// The attempt that a question belongs to; 0 means none.
const THIRD: &str = "ALTER TABLE questions ADD COLUMN envelope INTEGER NOT NULL DEFAULT 0";

/// The time of the last change to a rate limit, so that a clock that was set back is noticed.
///
/// Existing rows get the time when their last slot was free.
const FOURTH: &str = "
    ALTER TABLE accounts ADD COLUMN written_at INTEGER NOT NULL DEFAULT 0;
    UPDATE accounts SET written_at = next_free;
";

/// The reason why a run stopped, instead of the exit code of the command.
///
/// An exit code that follows from the counts alone yields no reason, even if the run has the text of an earlier stop.
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

/// The kind of each envelope; earlier envelopes have the kind of their run.
const SIXTH: &str = "ALTER TABLE envelopes ADD COLUMN kind TEXT";

/// The campaign file of a run; unknown for earlier runs.
const SEVENTH: &str = "ALTER TABLE runs ADD COLUMN file TEXT";

/// Shared runs of single messages, and the blocks of rows that processes draw from these runs. A block records its
/// identifiers, the place where it was drawn, and an epoch while a process might hold it.
///
/// Unfinished single messages of earlier versions are finished, because nothing continues them.
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

/// The last allowed rate of an account, and the number of operations that used it.
const RATE_LIMIT_USE: &str = "
    ALTER TABLE accounts ADD COLUMN rate REAL;
    ALTER TABLE accounts ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;
";

/// The time at which a block was drawn, for hourly limits; unknown for earlier blocks.
const DRAWN_AT: &str = "ALTER TABLE blocks ADD COLUMN drawn_at INTEGER";

/// Sharding of a run: its terms and number, the claim that started it, whether the gateway accepted any message, and
/// which worker drew which rows.
const SHARES: &str = "
    ALTER TABLE runs ADD COLUMN terms TEXT;
    ALTER TABLE runs ADD COLUMN sharing INTEGER;
    ALTER TABLE runs ADD COLUMN shared_by INTEGER;
    ALTER TABLE runs ADD COLUMN proven INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE blocks ADD COLUMN drawn_by TEXT;
";

/// Costs of rows, if known, and the spending of runs.
const SPENDING: &str = "
    ALTER TABLE envelopes ADD COLUMN costs BLOB;
    CREATE TABLE spending (
        run INTEGER PRIMARY KEY REFERENCES runs (key),
        recipients INTEGER NOT NULL,
        cost TEXT NOT NULL
    ) STRICT;
";

/// Messages of a run per day in a time zone. A day without a name marks that the counts are stored.
const DAYS: &str = "
    CREATE TABLE days (
        run INTEGER NOT NULL REFERENCES runs (key),
        zone TEXT NOT NULL,
        day TEXT NOT NULL,
        sent INTEGER NOT NULL,
        PRIMARY KEY (run, zone, day)
    ) STRICT, WITHOUT ROWID;
";

/// Channels of pipelines in envelopes. Delivery status follows another rule since this version, so runs with receipts
/// or retries are counted again once. A process of an earlier version that still has the ledger open counts its commits
/// in `meta`; without that table it can no longer write.
const CHAINS: &str = "
    ALTER TABLE envelopes ADD COLUMN chains TEXT;
    UPDATE runs SET receipts_counted = receipts + 1
        WHERE purged_at IS NULL AND (receipts > 0 OR EXISTS (SELECT 1 FROM orders WHERE run = runs.key));
    ALTER TABLE meta RENAME TO identity;
";

/// The figures of a run.
const FIGURES: &str = "
    CREATE TABLE figures (
        run INTEGER PRIMARY KEY REFERENCES runs (key),
        figures BLOB NOT NULL
    ) STRICT;
";
