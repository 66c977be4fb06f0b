-- What operators changed in the configuration: few facts, of which every one counts.
CREATE INDEX facts_of_configuration ON facts (sequence, place) WHERE type = 'config-replaced';
