-- What lists of runs, reports about one host of a run, and the history of hosts need, and nothing more.

-- Why an operator started it. Before, it was read from the fact of the start.
ALTER TABLE runs ADD COLUMN reason TEXT;
UPDATE runs SET reason = (
    SELECT json_extract(fact, '$.trigger.reason') FROM facts WHERE facts.run = runs.id AND type = 'run-started' LIMIT 1
);

-- The host is in the index, so that the facts about one host of a large run are found in it alone.
DROP INDEX facts_of_run;
CREATE INDEX facts_of_run ON facts (run, sequence, place, host) WHERE run IS NOT NULL;

-- Who approved, withdrew and removed which hosts: few facts, of which every one counts.
DROP INDEX facts_of_enrolment;
CREATE INDEX facts_of_enrolment ON facts (sequence, place)
    WHERE type IN ('hosts-approved', 'host-withdrawn', 'host-removed');

-- There are a few thousand runs at most: filters look at each of them, and need no index.
DROP INDEX run_hosts_of_host;
DROP INDEX runs_of_result;
