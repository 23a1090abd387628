-- +goose Up
-- Keys by which people and machines ask a server of this team. Of a key its SHA-256 is kept, not the key.

CREATE TABLE keys (
	name    TEXT PRIMARY KEY,
	digest  TEXT NOT NULL UNIQUE,
	may     TEXT NOT NULL CHECK (may IN ('read', 'push', 'exec')),
	made    TIMESTAMPTZ NOT NULL DEFAULT now(),
	expires TIMESTAMPTZ,
	revoked TIMESTAMPTZ
);
