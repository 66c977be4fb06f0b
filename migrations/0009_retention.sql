-- What the store does not have of the journal, and what it no longer has.

-- Records that this store lacks: the journal was trimmed before it had them, because its instance was away. Another
-- instance's store may have them.
CREATE TABLE gaps (
    -- The last record before the gap, and the first after it, with its time.
    last    INTEGER PRIMARY KEY,
    next    INTEGER NOT NULL,
    next_at TEXT NOT NULL
) STRICT;

-- For pruning: what is older than a point in time.
CREATE INDEX facts_without_run ON facts (at) WHERE run IS NULL;
CREATE INDEX facts_of_waits ON facts (sequence, place) WHERE type = 'lock-awaited';
