-- What was pruned, and more of what is.

-- The last fact of all that were pruned, so that a reader who has that one and those before it misses nothing.
CREATE TABLE pruned (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    sequence INTEGER NOT NULL,
    place    INTEGER NOT NULL
) STRICT;

-- Only facts before the base are pruned. Of these, any but the last may be followed by one that was.
INSERT INTO pruned
    SELECT 1, sequence, place FROM facts WHERE sequence < (SELECT sequence FROM base)
    ORDER BY sequence DESC, place DESC LIMIT 1;

-- That a client waited, and no longer does.
DROP INDEX facts_of_waits;
CREATE INDEX facts_of_waits ON facts (sequence, place) WHERE type IN ('lock-awaited', 'lock-wait-ended');
