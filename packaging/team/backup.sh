#!/usr/bin/env bash
# Copies a team's runs, while everything goes on: backup.sh FOLDER
#
# HIGHTIDE_STORE and HIGHTIDE_OBJECTS say of what, as for hightide. The rows are copied first. Objects are never changed,
# so each run of the copy has all of its files, but one that was deleted meanwhile. An object that is there already is
# not copied again: name the same folder each time.
set -euo pipefail
fail() { echo "backup.sh: $1" >&2; exit 4; }
[[ $# == 1 ]] || { echo "usage: HIGHTIDE_STORE=postgres://… HIGHTIDE_OBJECTS=… backup.sh FOLDER" >&2; exit 2; }
: "${HIGHTIDE_STORE:?names the PostgreSQL}" "${HIGHTIDE_OBJECTS:?names where the objects are}"
to=$1
mkdir -p "$to/objects"
chmod 700 "$to"
pg_dump --dbname="$HIGHTIDE_STORE" --format=custom --no-owner --file="$to/rows.new" || fail "pg_dump failed: nothing is changed"
case $HIGHTIDE_OBJECTS in
file:///*)
	from=${HIGHTIDE_OBJECTS#file://}
	# Whole objects alone: one that is being written has another name until it is. One may be deleted meanwhile.
	(cd "$from" && find . -type f ! -name '.*' -print0) | while IFS= read -r -d '' name; do
		[[ -e $to/objects/$name ]] && continue
		mkdir -p "$to/objects/$(dirname "$name")"
		if cp -p "$from/$name" "$to/objects/$name.new" 2>/dev/null; then
			mv "$to/objects/$name.new" "$to/objects/$name"
		elif [[ -e $from/$name ]]; then
			fail "cannot copy $from/$name: is the disk full?"
		fi
	done
	;;
s3://*)
	command -v rclone >/dev/null || fail "rclone copies buckets: install it, and name the bucket's remote in RCLONE_FROM"
	rclone copy --immutable "${RCLONE_FROM:?is the remote and the bucket for rclone, as team:our-runs}" "$to/objects"
	;;
*) fail "objects at $HIGHTIDE_OBJECTS cannot be copied" ;;
esac
mv "$to/rows.new" "$to/rows"
echo "copied into $to"
