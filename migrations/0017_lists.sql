-- What is selected by a property of a fact has a column that the projector writes, so that no query knows the names of facts.

-- The list in which operators find it, where they look for it: see the kernel's `AuditList`.
ALTER TABLE facts ADD COLUMN list TEXT;
-- The command of the control stream that it is about: its sequence, and its action if it was seen, NULL if it was retracted.
ALTER TABLE facts ADD COLUMN command INTEGER;
ALTER TABLE facts ADD COLUMN action TEXT;

-- The indexes that name facts.
DROP INDEX facts_of_operators;
DROP INDEX facts_of_slots;
DROP INDEX facts_of_waits;
DROP INDEX facts_of_configuration;
DROP INDEX facts_of_strongbox;
DROP INDEX facts_of_enrolment;
DROP INDEX facts_of_missed_runs;
DROP INDEX facts_of_reboots;

-- The names of facts never change, so what is stored can be sorted by them once.
UPDATE facts SET list = CASE
    WHEN type IN ('hold-placed', 'holder-released') THEN 'holds'
    WHEN type IN ('lock-granted', 'lock-released') THEN 'locks'
    WHEN type IN ('lock-awaited', 'lock-wait-ended') THEN 'waits'
    WHEN type = 'config-replaced' THEN 'configuration'
    WHEN type IN ('strongbox-made', 'secret-kept', 'secret-removed') THEN 'strongbox'
    WHEN type IN ('hosts-approved', 'host-withdrawn', 'host-removed') THEN 'enrolment'
    WHEN type = 'node' THEN 'enrolment'
    WHEN type = 'run-missed' THEN 'missed-runs'
    ELSE 'reboots'
END
WHERE type IN (
    'hold-placed', 'holder-released', 'lock-granted', 'lock-released', 'lock-awaited', 'lock-wait-ended', 'config-replaced',
    'strongbox-made', 'secret-kept', 'secret-removed', 'hosts-approved', 'host-withdrawn', 'host-removed', 'run-missed',
    'reboots-queued', 'reboot', 'reboot-queue-switched', 'reboot-backoff-reset'
) OR (type = 'node' AND actor IS NOT NULL);

UPDATE facts SET command = json_extract(fact, '$.event.sequence'), action = json_extract(fact, '$.event.action')
WHERE type = 'host' AND event = 'command-sent';
UPDATE facts SET command = json_extract(fact, '$.event.sequence'), action = 'reboot'
WHERE type = 'reboot' AND json_extract(fact, '$.event.kind') = 'command-sent';
UPDATE facts SET command = json_extract(fact, '$.sequence'), action = json_extract(fact, '$.action')
WHERE type IN ('late-command-seen', 'command-retracted');

-- Few facts each, of which every one counts, among the many that runs and clients cause.
CREATE INDEX facts_of_holds ON facts (sequence, place) WHERE list = 'holds';
-- For where that is few among what runs leave.
CREATE INDEX facts_of_slots ON facts (sequence, place) WHERE list IN ('holds', 'locks');
CREATE INDEX facts_of_waits ON facts (sequence, place) WHERE list = 'waits';
CREATE INDEX facts_of_configuration ON facts (sequence, place) WHERE list = 'configuration';
CREATE INDEX facts_of_strongbox ON facts (sequence, place) WHERE list = 'strongbox';
CREATE INDEX facts_of_enrolment ON facts (sequence, place) WHERE list = 'enrolment';
CREATE INDEX facts_of_missed_runs ON facts (sequence, place) WHERE list = 'missed-runs';
CREATE INDEX facts_of_reboots ON facts (sequence, place) WHERE list = 'reboots';
