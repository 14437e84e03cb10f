//! What is known of people, what they were told, and what somebody decided.

/// The suppression list: its records, of which none is ever deleted, and its version; and what each run heeds of it.
///
/// A purpose that is NULL belongs to a run from before there was any: a campaign's was marketing.
pub(super) const OPT_OUTS: &str = "
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
pub(super) const RECEIPTS: &str = "
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
pub(super) const NOTIFICATIONS: &str = "
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
pub(super) const SCHEDULES: &str = "
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

/// What was looked at before it is sent, what of it was approved, and what each approval was used for. Approvals and their
/// uses are never deleted: a token that is brought again is known.
pub(super) const PLANS: &str = "
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

/// When numbers got messages, by the number; and of which gateways that is kept, and since when it was last cleared.
pub(super) const CONTACTS: &str = "
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

/// With what numbers are hashed that were forgotten, whether all that was freed since is overwritten, and the rows that
/// have no number any more: some wait to be taken out of copies and results.
pub(super) const FORGETTING: &str = "
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

/// When a run was purged, and what stays of the numbers that have a message of it.
pub(super) const PURGED: &str = "
    ALTER TABLE runs ADD COLUMN purged_at INTEGER;
    CREATE TABLE guarded (
        run INTEGER PRIMARY KEY REFERENCES runs (key),
        numbers BLOB NOT NULL,
        sum INTEGER NOT NULL
    ) STRICT;
";

/// That a ledger is a backup, or was put back from one.
pub(super) const BACKUP: &str = "
    CREATE TABLE backup (
        made_at INTEGER NOT NULL,
        restored_at INTEGER
    ) STRICT;
";

/// The `approval` rules of accounts. Profiles that were only used through loopback keep that as their host. Runs from before
/// opt-outs were heeded went through loopback if their account is a loopback address.
pub(super) const APPROVAL_RULES: &str = "
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

/// The single messages that were sent lately: a hash with the ledger's secret, and when it expires.
pub(super) const REPEATS: &str = "
    CREATE TABLE repeats (
        hash BLOB PRIMARY KEY,
        until INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE repeat_key (key BLOB NOT NULL) STRICT;
";
