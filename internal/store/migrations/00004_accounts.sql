-- +goose Up
-- Whose keys there are, and who did what.

ALTER TABLE keys
	ADD COLUMN account TEXT NOT NULL DEFAULT '',
	DROP CONSTRAINT keys_may_check,
	ADD CONSTRAINT keys_may_check CHECK (may IN ('read', 'push', 'exec', 'admin'));
COMMENT ON COLUMN keys.account IS 'whose projects it opens; empty: those of its own name';

CREATE TABLE acts (
	id     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at     TIMESTAMPTZ NOT NULL DEFAULT now(),
	who    TEXT NOT NULL,
	source TEXT NOT NULL,
	what   TEXT NOT NULL,
	status BIGINT NOT NULL
);
COMMENT ON COLUMN acts.status IS 'of HTTP; 0: of a command that has the database itself';
