-- +goose Up
-- Links by which people outside see one run. Of a link the SHA-256 of its secret is kept, not the secret.

CREATE TABLE shares (
	id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	run     TEXT COLLATE "C" NOT NULL REFERENCES recorded ON DELETE CASCADE,
	digest  TEXT NOT NULL UNIQUE,
	maker   TEXT NOT NULL,
	made    TIMESTAMPTZ NOT NULL DEFAULT now(),
	expires TIMESTAMPTZ NOT NULL,
	revoked TIMESTAMPTZ
);
CREATE INDEX shares_run ON shares (run);
COMMENT ON COLUMN shares.maker IS 'the account that made the link';
