-- The last fact of all that were pruned, so that a reader who has that one and those before it misses nothing.
CREATE TABLE pruned (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    sequence INTEGER NOT NULL,
    place    INTEGER NOT NULL
) STRICT;

-- Of what there is, any fact but the last may be followed by one that was pruned.
INSERT INTO pruned SELECT 1, sequence, place FROM facts ORDER BY sequence DESC, place DESC LIMIT 1;
