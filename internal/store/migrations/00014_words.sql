-- +goose Up
-- Words are looked for by an index of trigrams, where the database can have one: PostgreSQL's own extension pg_trgm is
-- installed, and the schema's owner may use it. Else all rows are read.

-- +goose StatementBegin
DO $$
BEGIN
	CREATE EXTENSION IF NOT EXISTS pg_trgm;
	CREATE INDEX recorded_text ON recorded USING gin (text gin_trgm_ops);
EXCEPTION WHEN insufficient_privilege OR undefined_file OR undefined_object OR feature_not_supported THEN
	RAISE NOTICE 'words are looked for without an index: %', SQLERRM;
END
$$;
-- +goose StatementEnd
