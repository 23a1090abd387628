-- +goose Up
-- Runs as they are listed, the files that are kept of them, and of which objects the files consist.

CREATE TABLE recorded (
	id                     TEXT COLLATE "C" PRIMARY KEY,
	name                   TEXT NOT NULL,
	verb                   TEXT NOT NULL,
	label                  TEXT NOT NULL,
	command                TEXT NOT NULL,
	host                   TEXT NOT NULL,
	state                  TEXT NOT NULL,
	start_wall_ns          BIGINT NOT NULL,
	duration_ns            BIGINT NOT NULL,
	ended_kind             TEXT NOT NULL,
	ended_text             TEXT NOT NULL,
	figure_bytes           BIGINT NOT NULL,
	figure_error_bytes     BIGINT NOT NULL,
	figure_what            TEXT NOT NULL,
	figure_source          TEXT NOT NULL,
	figure_label           TEXT NOT NULL,
	figure_at_least        BOOLEAN NOT NULL,
	exit_code              BIGINT,
	signal                 BIGINT,
	stopped                BOOLEAN NOT NULL,
	steps                  BIGINT NOT NULL,
	processes              BIGINT NOT NULL,
	peak_host_rss_bytes    BIGINT,
	peak_host_pss_bytes    BIGINT,
	peak_device_used_bytes BIGINT,
	peak_allocated_bytes   BIGINT,
	peak_reserved_bytes    BIGINT,
	ooms                   BIGINT NOT NULL,
	snapshots              BIGINT NOT NULL,
	dropped                BIGINT NOT NULL,
	findings               BIGINT,
	size_bytes             BIGINT NOT NULL,
	damaged                BOOLEAN NOT NULL,
	text                   TEXT NOT NULL,
	writer                 TEXT NOT NULL DEFAULT '',
	heard                  TIMESTAMPTZ
);
COMMENT ON COLUMN recorded.text IS 'what a search looks in: id, name and command in lower case';
COMMENT ON COLUMN recorded.writer IS 'the outbox that wrote the run last';
COMMENT ON COLUMN recorded.heard IS 'when who writes the run was last heard of; null: nobody writes it';
CREATE INDEX recorded_start ON recorded (start_wall_ns DESC, id DESC);
CREATE INDEX recorded_name ON recorded (name, start_wall_ns DESC);

CREATE TABLE tags (
	run   TEXT COLLATE "C" NOT NULL REFERENCES recorded ON DELETE CASCADE,
	key   TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (run, key)
);
CREATE INDEX tags_key ON tags (key, value);

CREATE TABLE objects (
	hash       TEXT COLLATE "C" PRIMARY KEY,
	size_bytes BIGINT NOT NULL
);
COMMENT ON TABLE objects IS 'pieces of files in the object store, by their SHA-256; equal pieces are kept once';

CREATE TABLE files (
	file       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	run        TEXT COLLATE "C" NOT NULL,
	name       TEXT NOT NULL,
	size_bytes BIGINT NOT NULL,
	whole      BOOLEAN NOT NULL DEFAULT FALSE,
	writer     TEXT NOT NULL,
	begun      TIMESTAMPTZ NOT NULL DEFAULT now()
);
COMMENT ON COLUMN files.whole IS 'false while it is sent: nobody sees it yet';
CREATE UNIQUE INDEX files_whole ON files (run, name) WHERE whole;
CREATE UNIQUE INDEX files_sent ON files (run, name, writer) WHERE NOT whole;

CREATE TABLE parts (
	file       BIGINT NOT NULL REFERENCES files ON DELETE CASCADE,
	at         BIGINT NOT NULL,
	size_bytes BIGINT NOT NULL,
	hash       TEXT COLLATE "C" NOT NULL REFERENCES objects,
	PRIMARY KEY (file, at)
);
CREATE INDEX parts_hash ON parts (hash);

-- runs is recorded as people list it: a run runs as long as its writer is heard of.
CREATE VIEW runs AS
SELECT id, name, verb, label, command, host,
	CASE WHEN heard > now() - interval '60 seconds' THEN 'running'
	     WHEN state = 'running' THEN 'cut off' ELSE state END AS state,
	start_wall_ns, duration_ns,
	CASE WHEN heard > now() - interval '60 seconds' THEN 'running'
	     WHEN state = 'running' THEN 'cut off' ELSE ended_kind END AS ended_kind,
	CASE WHEN heard > now() - interval '60 seconds' THEN 'running'
	     WHEN state = 'running' THEN 'cut off' ELSE ended_text END AS ended_text,
	figure_bytes, figure_error_bytes, figure_what, figure_source, figure_label, figure_at_least,
	exit_code, signal, stopped, steps, processes,
	peak_host_rss_bytes, peak_host_pss_bytes, peak_device_used_bytes, peak_allocated_bytes, peak_reserved_bytes,
	ooms, snapshots, dropped, findings, size_bytes, damaged, text,
	to_timestamp(start_wall_ns / 1e9) AS started
FROM recorded;
