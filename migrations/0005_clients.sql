-- The same together with what clients did about slots, for where that is few among what runs leave.
CREATE INDEX facts_of_slots ON facts (sequence, place)
    WHERE type IN ('hold-placed', 'holder-released', 'lock-granted', 'lock-released');
