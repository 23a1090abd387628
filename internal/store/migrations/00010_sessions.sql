-- +goose Up
-- Browsers that were let in over TLS, so that they stay so when the server is started again. Of the cookie and of the
-- page's secret the SHA-256 is kept, and not what a session may: that is looked up at each request.

CREATE TABLE sessions (
	cookie  TEXT PRIMARY KEY,
	page    TEXT NOT NULL,
	name    TEXT NOT NULL,
	key     TEXT NOT NULL,
	share   TEXT NOT NULL,
	account TEXT NOT NULL,
	since   TIMESTAMPTZ NOT NULL,
	until   TIMESTAMPTZ NOT NULL,
	groups  TEXT NOT NULL,
	used    TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX sessions_used ON sessions (used);
