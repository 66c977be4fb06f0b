-- Queries find facts by the list that the projector writes beside them, not by their types.

-- The list in which operators find the fact, if they look for it: a word of the kernel's `AuditList`.
ALTER TABLE facts ADD COLUMN list TEXT;

-- The indexes that name types.
DROP INDEX facts_of_operators;
DROP INDEX facts_of_slots;
DROP INDEX facts_of_waits;
DROP INDEX facts_of_configuration;
DROP INDEX facts_of_strongbox;
DROP INDEX facts_of_enrolment;
DROP INDEX facts_of_missed_runs;
DROP INDEX facts_of_reboots;

-- Types never change, so the facts that are there can be sorted by them once.
UPDATE facts SET list = CASE
    WHEN type IN ('hold-placed', 'holder-released') THEN 'holds'
    WHEN type IN ('lock-granted', 'lock-released') THEN 'locks'
    WHEN type IN ('lock-awaited', 'lock-wait-ended') THEN 'waits'
    WHEN type = 'config-replaced' THEN 'configuration'
    WHEN type IN ('strongbox-made', 'secret-kept', 'secret-removed') THEN 'strongbox'
    WHEN type IN ('hosts-approved', 'host-withdrawn', 'host-removed', 'node') THEN 'enrolment'
    WHEN type = 'run-missed' THEN 'missed-runs'
    ELSE 'reboots'
END
WHERE type IN (
    'hold-placed', 'holder-released', 'lock-granted', 'lock-released', 'lock-awaited', 'lock-wait-ended', 'config-replaced',
    'strongbox-made', 'secret-kept', 'secret-removed', 'hosts-approved', 'host-withdrawn', 'host-removed', 'run-missed',
    'reboots-queued', 'reboot', 'reboot-queue-switched', 'reboot-backoff-reset'
) OR (type = 'node' AND actor IS NOT NULL);

-- The few facts that operators look for, among the many that runs and clients cause.
CREATE INDEX facts_of_lists ON facts (list, sequence, place) WHERE list IS NOT NULL;
-- Two lists at once, in order.
CREATE INDEX facts_of_slots ON facts (sequence, place) WHERE list IN ('holds', 'locks');
