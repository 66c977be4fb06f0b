-- What operators did about slots: few facts among the many that clients cause.
CREATE INDEX facts_of_operators ON facts (sequence, place) WHERE type IN ('hold-placed', 'holder-released');
