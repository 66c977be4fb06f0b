-- What counters in metrics count. Runs are pruned, and a counter that falls counts as one that began anew, so these are kept apart.

-- Runs that ended, by result and by what started them.
CREATE TABLE run_totals (
    result        TEXT NOT NULL,
    trigger_kind  TEXT NOT NULL,
    total         INTEGER NOT NULL,
    -- When the last of them ended.
    last_ended_at TEXT NOT NULL,
    PRIMARY KEY (result, trigger_kind)
) STRICT, WITHOUT ROWID;

INSERT INTO run_totals
    SELECT result, trigger_kind, count(*), max(ended_at) FROM runs WHERE ended_at IS NOT NULL GROUP BY result, trigger_kind;

-- Hosts that came to an end in a run after work was done on them, by the status in which they ended.
CREATE TABLE host_totals (
    status TEXT NOT NULL PRIMARY KEY,
    total  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO host_totals
    SELECT status, count(*) FROM run_hosts WHERE status IN ('upgraded', 'failed', 'timed-out') GROUP BY status;
