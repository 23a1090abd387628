-- +goose Up
-- What was checked of a commit of a project, by context: the last word on each. Who said it is in the log.

CREATE TABLE statuses (
	project     TEXT COLLATE "C" NOT NULL,
	commit      TEXT COLLATE "C" NOT NULL,
	context     TEXT COLLATE "C" NOT NULL,
	state       TEXT NOT NULL,
	description TEXT NOT NULL,
	target_url  TEXT NOT NULL,
	updated     TIMESTAMPTZ NOT NULL DEFAULT now(),
	PRIMARY KEY (project, commit, context)
);
CREATE INDEX statuses_commit ON statuses (commit);
COMMENT ON COLUMN statuses.state IS 'success, failure, error or pending';
