-- The projection of a site's journal: what history and audit read. Nothing here is the truth; all of it can be
-- made again from the journal, as far back as that goes.
--
-- Times are text, RFC 3339 in UTC with nine digits of seconds, so that they sort. Sequences are those of JetStream.
-- Facts and states are JSON, as in the journal.
--
-- Builds that were never released made this schema in steps, of which the last had the number 15. Their stores have all of
-- it already, hence IF NOT EXISTS.

-- "OSUP": tells this file from every other SQLite database.
PRAGMA application_id = 0x4F535550;

-- The site whose journal it is: one row.
CREATE TABLE IF NOT EXISTS site (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    name TEXT NOT NULL
) STRICT;

-- How far the journal has been taken in: one row, or none before the first record.
CREATE TABLE IF NOT EXISTS position (
    one                INTEGER PRIMARY KEY CHECK (one = 1),
    -- The last record: its sequence in the journal, and the id of its append.
    sequence           INTEGER NOT NULL,
    append_id          TEXT NOT NULL,
    -- How far the control stream had been taken into account by that record.
    control            INTEGER NOT NULL,
    -- When the two streams were created: another time is another stream, whatever its sequences.
    journal_created_at TEXT NOT NULL,
    control_created_at TEXT NOT NULL
) STRICT;

-- There are a few thousand runs at most: filters look at each of them, and need no index.
CREATE TABLE IF NOT EXISTS runs (
    -- In the order in which they started.
    number        INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    -- What started it, as one word, and who.
    trigger_kind  TEXT NOT NULL,
    actor         TEXT,
    started_at    TEXT NOT NULL,
    not_after     TEXT NOT NULL,
    phase         TEXT NOT NULL,
    -- JSON objects: how it goes through the hosts, and why no further host is started.
    rollout       TEXT NOT NULL,
    stopping      TEXT,
    ended_at      TEXT,
    result        TEXT,
    -- JSON object: status to number of hosts, where there are any.
    counts        TEXT NOT NULL,
    -- Why an operator started it.
    reason        TEXT
) STRICT;

CREATE TABLE IF NOT EXISTS run_hosts (
    run              TEXT NOT NULL REFERENCES runs (id),
    host             TEXT NOT NULL,
    application      TEXT NOT NULL,
    lock_group       TEXT NOT NULL,
    status           TEXT NOT NULL,
    since            TEXT NOT NULL,
    -- Why it waits, or came to an unhappy end: the sentence, the word, and the whole as a JSON object.
    reason           TEXT,
    reason_kind      TEXT,
    reason_json      TEXT,
    -- Its current command, or its last.
    command_action   TEXT,
    command_sequence INTEGER,
    -- From the grant of its slot to the end of its part in the run.
    started_at       TEXT,
    ended_at         TEXT,
    PRIMARY KEY (run, host)
) STRICT, WITHOUT ROWID;

-- Every fact of the journal.
CREATE TABLE IF NOT EXISTS facts (
    -- The sequence of its record in the journal, and its place in that record.
    sequence INTEGER NOT NULL,
    place    INTEGER NOT NULL,
    at       TEXT NOT NULL,
    type     TEXT NOT NULL,
    -- For a fact about a host in a run: what happened to it.
    event    TEXT,
    -- Who caused it, where somebody did; the run and the host it is about, where it is about one.
    actor    TEXT,
    run      TEXT,
    host     TEXT,
    -- The fact as a JSON object, as it stands in the journal.
    fact     TEXT NOT NULL,
    PRIMARY KEY (sequence, place)
) STRICT, WITHOUT ROWID;

-- The state before the first fact below: one row, or none when that was the beginning of everything. A journal that
-- was restored, or is trimmed, begins in the middle; without this its store could not tell the state from its facts.
CREATE TABLE IF NOT EXISTS base (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    -- The state holds everything before this record of the journal.
    sequence INTEGER NOT NULL,
    -- The state as a JSON object, as it stands in a snapshot.
    state    TEXT NOT NULL
) STRICT;

-- Records that this store lacks: the journal was trimmed before it had them, because its instance was away. Another
-- instance's store may have them.
CREATE TABLE IF NOT EXISTS gaps (
    -- The last record before the gap, and the first after it, with its time.
    last    INTEGER PRIMARY KEY,
    next    INTEGER NOT NULL,
    next_at TEXT NOT NULL
) STRICT;

-- The last fact of all that were pruned, so that a reader who has that one and those before it misses nothing.
CREATE TABLE IF NOT EXISTS pruned (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    sequence INTEGER NOT NULL,
    place    INTEGER NOT NULL
) STRICT;

-- What counters in metrics count. Runs are pruned, and a counter that falls counts as one that began anew, so these are kept apart.

-- Runs that ended, by result and by what started them.
CREATE TABLE IF NOT EXISTS run_totals (
    result        TEXT NOT NULL,
    trigger_kind  TEXT NOT NULL,
    total         INTEGER NOT NULL,
    -- When the last of them ended.
    last_ended_at TEXT NOT NULL,
    PRIMARY KEY (result, trigger_kind)
) STRICT, WITHOUT ROWID;

-- Hosts that came to an end in a run after work was done on them, by the status in which they ended.
CREATE TABLE IF NOT EXISTS host_totals (
    status TEXT NOT NULL PRIMARY KEY,
    total  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The host is in the index, so that the facts about one host of a large run are found in it alone.
CREATE INDEX IF NOT EXISTS facts_of_run ON facts (run, sequence, place, host) WHERE run IS NOT NULL;

-- For pruning: what is older than a point in time.
CREATE INDEX IF NOT EXISTS facts_without_run ON facts (at) WHERE run IS NULL;

-- The others are for what operators ask of the history: few facts each, of which every one counts.

-- What operators did about slots, among the many facts that clients cause.
CREATE INDEX IF NOT EXISTS facts_of_operators ON facts (sequence, place) WHERE type IN ('hold-placed', 'holder-released');
-- The same together with what FleetLock clients did about slots, for where that is few among what runs leave.
CREATE INDEX IF NOT EXISTS facts_of_slots ON facts (sequence, place)
    WHERE type IN ('hold-placed', 'holder-released', 'lock-granted', 'lock-released');
-- That a client waited, and no longer does.
CREATE INDEX IF NOT EXISTS facts_of_waits ON facts (sequence, place) WHERE type IN ('lock-awaited', 'lock-wait-ended');
-- What operators changed in the configuration.
CREATE INDEX IF NOT EXISTS facts_of_configuration ON facts (sequence, place) WHERE type = 'config-replaced';
-- Who had which secrets kept and removed.
CREATE INDEX IF NOT EXISTS facts_of_strongbox ON facts (sequence, place)
    WHERE type IN ('strongbox-made', 'secret-kept', 'secret-removed');
-- What operators decided about hosts, among it whose Kubernetes nodes are to be uncordoned. Of a node there are many more,
-- but no other has an actor.
CREATE INDEX IF NOT EXISTS facts_of_enrolment ON facts (sequence, place)
    WHERE type IN ('hosts-approved', 'host-withdrawn', 'host-removed') OR (type = 'node' AND actor IS NOT NULL);
-- Which runs were due and did not start.
CREATE INDEX IF NOT EXISTS facts_of_missed_runs ON facts (sequence, place) WHERE type = 'run-missed';
-- What operators did about the reboot queue, and what became of its entries.
CREATE INDEX IF NOT EXISTS facts_of_reboots ON facts (sequence, place)
    WHERE type IN ('reboots-queued', 'reboot', 'reboot-queue-switched', 'reboot-backoff-reset');
