-- +goose Up
-- People who sign in with a password on a team's server. Of a password its bcrypt is kept, not the password.

CREATE TABLE accounts (
	name     TEXT PRIMARY KEY,
	password TEXT NOT NULL,
	made     TIMESTAMPTZ NOT NULL DEFAULT now(),
	closed   TIMESTAMPTZ
);
COMMENT ON COLUMN accounts.closed IS 'when the account was closed: it lets nobody in; null: it is open';
