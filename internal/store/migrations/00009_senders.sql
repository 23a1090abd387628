-- +goose Up
-- Who sent a run into its project: the writer changes with whoever tags it.

ALTER TABLE recorded ADD COLUMN sender TEXT NOT NULL DEFAULT '';
UPDATE recorded SET sender = substr(writer, 9) WHERE writer LIKE 'push of %';
CREATE INDEX recorded_sender ON recorded (sender) WHERE sender <> '';
COMMENT ON COLUMN recorded.sender IS 'the account that sent the run by a server; empty: who has the database wrote it';
