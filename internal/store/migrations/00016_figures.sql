-- +goose Up
-- What trends are made of beside the peak: growth and fragmentation, and how far off lines that held memory may be. Runs
-- of before have none until hightide reindex --findings.

ALTER TABLE recorded ADD COLUMN figures JSONB;
ALTER TABLE places ADD COLUMN error_bytes BIGINT NOT NULL DEFAULT 0;
COMMENT ON COLUMN places.error_bytes IS 'half width of the 95 % interval of bytes; 0: exact, or not known';

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
	to_timestamp(start_wall_ns / 1e9) AS started, git_commit, git_dirty, places, figures
FROM recorded;
