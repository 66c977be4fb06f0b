-- Which runs are of chosen hosts.
ALTER TABLE runs ADD COLUMN targeted INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET targeted = 1
WHERE id IN (SELECT run FROM facts WHERE type = 'run-started' AND json_extract(fact, '$.trigger.targeted'));
