-- +goose Up
-- What is told of runs that have ended, by messages to addresses of their projects.

ALTER TABLE recorded ADD COLUMN told BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE recorded SET told = TRUE;
CREATE INDEX recorded_untold ON recorded (id) WHERE NOT told;
COMMENT ON COLUMN recorded.told IS 'messages of the run are in deliveries, or none are to be sent';

CREATE TABLE deliveries (
	id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	run     TEXT COLLATE "C" NOT NULL REFERENCES recorded ON DELETE CASCADE,
	hook    TEXT NOT NULL,
	body    TEXT NOT NULL,
	made    TIMESTAMPTZ NOT NULL DEFAULT now(),
	tries   BIGINT NOT NULL DEFAULT 0,
	next    TIMESTAMPTZ NOT NULL DEFAULT now(),
	answer  TEXT NOT NULL DEFAULT ''
);
CREATE INDEX deliveries_next ON deliveries (next);
COMMENT ON TABLE deliveries IS 'messages that wait to be sent; a row goes when its message has arrived, or after a day';
COMMENT ON COLUMN deliveries.hook IS 'the SHA-256 of the project, the form and the address: the address itself is in the file of the team';
