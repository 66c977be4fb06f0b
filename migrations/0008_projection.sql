-- The projection of a site's journal: what history and audit read. Nothing here is the truth; all of it can be
-- made again from the journal.
--
-- Times are text, RFC 3339 in UTC with nine digits of seconds, so that they sort. Sequences are those of JetStream.
-- Facts and states are JSON of the journal's format 2. Schemas up to 7 had facts of another format, and were never released.

-- "OSUP": tells this file from every other SQLite database.
PRAGMA application_id = 0x4F535550;

-- The site whose journal it is: one row.
CREATE TABLE site (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    name TEXT NOT NULL
) STRICT;

-- How far the journal has been taken in: one row, or none before the first record.
CREATE TABLE position (
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

CREATE TABLE runs (
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
    counts        TEXT NOT NULL
) STRICT;

CREATE TABLE run_hosts (
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
CREATE TABLE facts (
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

CREATE INDEX facts_of_run ON facts (run, sequence, place) WHERE run IS NOT NULL;

-- The state before the first fact below: one row, or none when that was the beginning of everything. A journal that
-- was restored, or is trimmed, begins in the middle; without this its store could not tell the state from its facts.
CREATE TABLE base (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    -- The state holds everything before this record of the journal.
    sequence INTEGER NOT NULL,
    -- The state as a JSON object, as it stands in a snapshot.
    state    TEXT NOT NULL
) STRICT;

-- What operators did about slots: few facts among the many that clients cause.
CREATE INDEX facts_of_operators ON facts (sequence, place) WHERE type IN ('hold-placed', 'holder-released');
-- The same together with what FleetLock clients did about slots, for where that is few among what runs leave.
CREATE INDEX facts_of_slots ON facts (sequence, place)
    WHERE type IN ('hold-placed', 'holder-released', 'lock-granted', 'lock-released');
-- What operators changed in the configuration: few facts, of which every one counts.
CREATE INDEX facts_of_configuration ON facts (sequence, place) WHERE type = 'config-replaced';
-- Who had which secrets kept and removed: few facts, of which every one counts.
CREATE INDEX facts_of_strongbox ON facts (sequence, place)
    WHERE type IN ('strongbox-made', 'secret-kept', 'secret-removed');
-- Who approved and withdrew which hosts: few facts, of which every one counts.
CREATE INDEX facts_of_enrolment ON facts (sequence, place)
    WHERE type IN ('hosts-approved', 'host-withdrawn');
