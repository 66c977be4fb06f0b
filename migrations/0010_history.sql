-- For what operators ask of the history.

-- Which runs were due and did not start: few facts, of which every one counts.
CREATE INDEX facts_of_missed_runs ON facts (sequence, place) WHERE type = 'run-missed';
-- The runs of a host, and those with a result.
CREATE INDEX run_hosts_of_host ON run_hosts (host, run);
CREATE INDEX runs_of_result ON runs (result, number);
