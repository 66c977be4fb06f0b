-- The state before the first fact below: one row, or none when that was the beginning of everything. A journal that
-- was restored, or is trimmed, begins in the middle; without this its store could not tell the state from its facts.
CREATE TABLE base (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    -- The state holds everything before this record of the journal.
    sequence INTEGER NOT NULL,
    -- The state as a JSON object, as it stands in a snapshot.
    state    TEXT NOT NULL
) STRICT;
