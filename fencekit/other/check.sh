#!/bin/sh
# check.sh FILE FENCE [NEW] renames NEW to FILE, or prints FILE, unless FILE has a greater fence.
set -eu
exec 9>>"$1.lock"
flock 9
known=$(cat "$1.fence" 2>/dev/null || echo 0)
if ! [ "$known" -le "$2" ]; then echo "stale_fence $known" >&2; exit 9; fi
echo "$2" >"$1.fence.new"
sync "$1.fence.new"
mv "$1.fence.new" "$1.fence"
if [ $# = 3 ]; then mv "$3" "$1"; else cat "$1"; fi
