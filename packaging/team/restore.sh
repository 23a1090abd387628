#!/usr/bin/env bash
# Makes a team's runs of a copy of backup.sh, in an empty database and an empty place for objects: restore.sh FOLDER
set -euo pipefail
fail() { echo "restore.sh: $1" >&2; exit 4; }
[[ $# == 1 ]] || { echo "usage: HIGHTIDE_STORE=postgres://… HIGHTIDE_OBJECTS=… restore.sh FOLDER" >&2; exit 2; }
: "${HIGHTIDE_STORE:?names the new PostgreSQL}" "${HIGHTIDE_OBJECTS:?names where the objects are to be}"
from=$1
[[ -f $from/rows ]] || fail "$from has no whole copy of backup.sh"
there=$(psql --dbname="$HIGHTIDE_STORE" -Atc "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") ||
	fail "the database cannot be used"
[[ $there == 0 ]] || fail "the database is not empty: make a new one, so that nothing is overwritten"
case $HIGHTIDE_OBJECTS in
file:///*)
	to=${HIGHTIDE_OBJECTS#file://}
	mkdir -p "$to"
	cp -Rpn "$from/objects/." "$to/"
	;;
s3://*)
	command -v rclone >/dev/null || fail "rclone copies buckets: install it, and name the bucket's remote in RCLONE_TO"
	rclone copy --immutable "$from/objects" "${RCLONE_TO:?is the remote and the bucket for rclone, as team:our-runs}"
	;;
*) fail "objects cannot be put at $HIGHTIDE_OBJECTS" ;;
esac
# The rows come last, in one transaction: whoever looks before sees no run, never one without its files.
pg_restore --dbname="$HIGHTIDE_STORE" --no-owner --single-transaction --exit-on-error "$from/rows"
echo "restored from $from; hightide ls shows the runs"
