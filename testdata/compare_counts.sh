#!/bin/sh
# Compares what logs hold after an import of transcripts with an independent
# count of the source files, on both stores.
# Usage: testdata/compare_counts.sh [--format NAME] FILE_OR_FOLDER...
# NAME is claude (the default), one that has a count_NAME.py, or one that
# count_documents.py counts.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
format=claude
if [ "${1-}" = --format ]; then format=$2; shift 2; fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for i in "$@"; do test -e "$i" || { echo "no such file: $i" >&2; exit 1; }; done
if [ -f "$here/count_$format.py" ]; then
    python3 "$here/count_$format.py" "$@" >"$tmp/source"
else
    python3 "$here/count_documents.py" "$format" "$@" >"$tmp/source"
fi
(cd "$here/.." && go build -o "$tmp/countlog" ./testdata/countlog)
for store in jsonl log.db; do
    "$tmp/countlog" --format "$format" --store "$tmp/$store" "$@" >"$tmp/log"
    diff "$tmp/source" "$tmp/log" && echo "$store: $(wc -l <"$tmp/log") sessions agree"
    "$tmp/countlog" --format "$format" --store "$tmp/$store" "$@" >"$tmp/again"
    diff "$tmp/log" "$tmp/again"
done
