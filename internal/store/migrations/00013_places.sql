-- +goose Up
-- What runs are searched for by beside their rows: findings of their reports, and lines that held their memory. Runs of
-- before have none until hightide reindex --findings.

CREATE TABLE places (
	run           TEXT COLLATE "C" NOT NULL REFERENCES recorded ON DELETE CASCADE,
	at            BIGINT NOT NULL,
	start_wall_ns BIGINT NOT NULL,
	kind          TEXT NOT NULL,
	severity      TEXT NOT NULL,
	file          TEXT NOT NULL,
	base          TEXT NOT NULL,
	line          BIGINT NOT NULL,
	function      TEXT NOT NULL,
	bytes         BIGINT,
	PRIMARY KEY (run, at)
);
COMMENT ON COLUMN places.kind IS 'of the finding; empty: a line that held memory at its highest';
COMMENT ON COLUMN places.base IS 'the name of the file, without its folders';
COMMENT ON COLUMN places.bytes IS 'what the finding is about, or what the line held; null: not known';
COMMENT ON COLUMN places.start_wall_ns IS 'that of the run';
CREATE INDEX places_file ON places (base, start_wall_ns DESC, run DESC);
CREATE INDEX places_line ON places (base, line, start_wall_ns DESC, run DESC);
CREATE INDEX places_kind ON places (kind, start_wall_ns DESC, run DESC) INCLUDE (base, line) WHERE kind <> '';

ALTER TABLE recorded ADD COLUMN places BIGINT;
CREATE INDEX recorded_unasked ON recorded (start_wall_ns DESC, id DESC) WHERE places IS NULL;

CREATE OR REPLACE VIEW runs AS
SELECT id, name, verb, label, command, host,
	CASE WHEN heard BETWEEN now() - interval '60 seconds' AND now() + interval '60 seconds' THEN 'running'
	     WHEN state = 'running' THEN 'cut off' ELSE state END AS state,
	start_wall_ns, duration_ns,
	CASE WHEN heard BETWEEN now() - interval '60 seconds' AND now() + interval '60 seconds' THEN 'running'
	     WHEN state = 'running' THEN 'cut off' ELSE ended_kind END AS ended_kind,
	CASE WHEN heard BETWEEN now() - interval '60 seconds' AND now() + interval '60 seconds' THEN 'running'
	     WHEN state = 'running' THEN 'cut off' ELSE ended_text END AS ended_text,
	figure_bytes, figure_error_bytes, figure_what, figure_source, figure_label, figure_at_least,
	exit_code, signal, stopped, steps, processes,
	peak_host_rss_bytes, peak_host_pss_bytes, peak_device_used_bytes, peak_allocated_bytes, peak_reserved_bytes,
	ooms, snapshots, dropped, findings, size_bytes, damaged, text,
	to_timestamp(start_wall_ns / 1e9) AS started, git_commit, git_dirty, places
FROM recorded;
