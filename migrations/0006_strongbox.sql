-- Who had which secrets kept and removed: few facts, of which every one counts.
CREATE INDEX facts_of_strongbox ON facts (sequence, place)
    WHERE type IN ('strongbox-made', 'secret-kept', 'secret-removed');
