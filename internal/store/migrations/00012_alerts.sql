-- +goose Up
-- Alerts that were told of while their run went on, so that each is told once.

CREATE TABLE alerts (
	run    TEXT COLLATE "C" NOT NULL REFERENCES recorded ON DELETE CASCADE,
	alert  TEXT NOT NULL,
	title  TEXT NOT NULL,
	PRIMARY KEY (run, alert)
);
COMMENT ON TABLE alerts IS 'messages of them are in deliveries, or have arrived';
