-- What operators decided about hosts, among it whose Kubernetes nodes are to be uncordoned: few facts, of which every one counts.
-- Of a node there are many more, but no other has an actor.
DROP INDEX facts_of_enrolment;
CREATE INDEX facts_of_enrolment ON facts (sequence, place)
    WHERE type IN ('hosts-approved', 'host-withdrawn', 'host-removed') OR (type = 'node' AND actor IS NOT NULL);
