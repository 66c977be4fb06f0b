-- What operators did about the reboot queue, and what became of its entries: few facts, of which every one counts.
CREATE INDEX facts_of_reboots ON facts (sequence, place)
    WHERE type IN ('reboots-queued', 'reboot', 'reboot-queue-switched', 'reboot-backoff-reset');
