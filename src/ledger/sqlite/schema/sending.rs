//! What sending needs: runs, envelopes, single rows, pace, blocks, sums.

/// The first schema.
///
/// Rows have no records of their own: an envelope holds its rows and what became of them, packed
/// (see `pack`). That is what makes a commit per envelope cheap. Only intents are indexed.
pub(super) const FIRST: &str = "
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
pub(super) const SECOND: &str = "
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
pub(super) const THIRD: &str = "ALTER TABLE questions ADD COLUMN envelope INTEGER NOT NULL DEFAULT 0";

/// An account's pace knows when it was written, so that a clock that was set back shows.
///
/// What was written before is taken as written when its last slot was free.
pub(super) const FOURTH: &str = "
    ALTER TABLE accounts ADD COLUMN written_at INTEGER NOT NULL DEFAULT 0;
    UPDATE accounts SET written_at = next_free;
";

/// A run keeps why it stopped, and not what the command exited with that sent it.
///
/// A code that followed from the counts alone has no reason, even where words of an earlier stop stand beside it.
pub(super) const FIFTH: &str = "
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
pub(super) const SIXTH: &str = "ALTER TABLE envelopes ADD COLUMN kind TEXT";

/// A run keeps the campaign file that it is of; of runs before that nobody knows it.
pub(super) const SEVENTH: &str = "ALTER TABLE runs ADD COLUMN file TEXT";

/// Single messages share a run, whose rows processes draw in blocks: each is recorded with its identifiers and the
/// place where it was drawn, and has an epoch as long as somebody may have it.
///
/// What an earlier version left open of runs of single messages is over: nothing ever goes on with it.
pub(super) const EIGHTH: &str = "
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
pub(super) const PACE_USED: &str = "
    ALTER TABLE accounts ADD COLUMN rate REAL;
    ALTER TABLE accounts ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;
";

/// A block knows when it was drawn: so many an hour may be allowed. Of one from before nobody knows it.
pub(super) const DRAWN_AT: &str = "ALTER TABLE blocks ADD COLUMN drawn_at INTEGER";

/// Several processes send one run: on what terms, since which taking of it, whether the gateway has taken anything of it,
/// and who drew which rows.
pub(super) const SHARES: &str = "
    ALTER TABLE runs ADD COLUMN terms TEXT;
    ALTER TABLE runs ADD COLUMN sharing INTEGER;
    ALTER TABLE runs ADD COLUMN shared_by INTEGER;
    ALTER TABLE runs ADD COLUMN proven INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE blocks ADD COLUMN drawn_by TEXT;
";

/// Envelopes know what their rows cost, where anybody does; and what runs have used is kept beside them.
pub(super) const SPENDING: &str = "
    ALTER TABLE envelopes ADD COLUMN costs BLOB;
    CREATE TABLE spending (
        run INTEGER PRIMARY KEY REFERENCES runs (key),
        recipients INTEGER NOT NULL,
        cost TEXT NOT NULL
    ) STRICT;
";

/// The days of a run on the clocks of a zone; a day without a name says that its sums are kept.
pub(super) const DAYS: &str = "
    CREATE TABLE days (
        run INTEGER NOT NULL REFERENCES runs (key),
        zone TEXT NOT NULL,
        day TEXT NOT NULL,
        sent INTEGER NOT NULL,
        PRIMARY KEY (run, zone, day)
    ) STRICT, WITHOUT ROWID;
";

/// Envelopes of pipelines know their channels. Delivery status follows another rule since then, so runs with receipts or retries
/// are counted again once. A process of the version before that still has the ledger open counts its commits in `meta`: without
/// that table it writes nothing more.
pub(super) const CHAINS: &str = "
    ALTER TABLE envelopes ADD COLUMN chains TEXT;
    UPDATE runs SET receipts_counted = receipts + 1
        WHERE purged_at IS NULL AND (receipts > 0 OR EXISTS (SELECT 1 FROM orders WHERE run = runs.key));
    ALTER TABLE meta RENAME TO identity;
";

/// What a projection made of all rows of a run.
pub(super) const FIGURES: &str = "
    CREATE TABLE figures (
        run INTEGER PRIMARY KEY REFERENCES runs (key),
        figures BLOB NOT NULL
    ) STRICT;
";
