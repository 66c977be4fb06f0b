-- Who approved and withdrew which hosts: few facts, of which every one counts.
CREATE INDEX facts_of_enrolment ON facts (sequence, place)
    WHERE type IN ('hosts-approved', 'host-withdrawn');
