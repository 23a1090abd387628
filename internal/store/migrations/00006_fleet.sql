-- +goose Up
-- What the machines of the team hold, and what was reserved on them by month.

CREATE TABLE machines (
	name    TEXT PRIMARY KEY,
	state   TEXT NOT NULL,
	heard   TIMESTAMPTZ NOT NULL DEFAULT now(),
	session TEXT NOT NULL,
	number  BIGINT NOT NULL
);
COMMENT ON TABLE machines IS 'what hightide watch of each machine said last, as JSON';
COMMENT ON COLUMN machines.number IS 'of the report in its session: one that is sent again is counted once';

CREATE TABLE reserved (
	month          TEXT NOT NULL,
	machine        TEXT NOT NULL,
	project        TEXT NOT NULL,
	person         TEXT NOT NULL,
	gpu            TEXT NOT NULL,
	held_ms        BIGINT NOT NULL,
	idle_ms        BIGINT NOT NULL,
	reserved_mib_s BIGINT NOT NULL,
	unused_mib_s   BIGINT NOT NULL,
	PRIMARY KEY (month, machine, project, person, gpu)
);
COMMENT ON TABLE reserved IS 'time of GPUs on which memory was held, and limits of jobs in MiB times seconds';
