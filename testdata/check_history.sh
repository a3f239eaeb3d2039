#!/bin/sh
# Imports transcripts into both stores and checks that the effective history of
# every session, at its head and at earlier events, is a valid request to
# Anthropic and to OpenAI, with all calls and a result for each.
# Usage: testdata/check_history.sh [--format NAME] FILE_OR_FOLDER...
# Without NAME, files are imported as what they are.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
format=auto
if [ "${1-}" = --format ]; then format=$2; shift 2; fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for i in "$@"; do test -e "$i" || { echo "no such file: $i" >&2; exit 1; }; done
(cd "$here/.." && go build -o "$tmp/" ./testdata/countlog ./testdata/checkhistory)
for store in jsonl log.db; do
    "$tmp/countlog" --format "$format" --store "$tmp/$store" --others "$tmp/others" "$@" >"$tmp/counts"
    "$tmp/checkhistory" --store "$tmp/$store" --cuts 20
done
