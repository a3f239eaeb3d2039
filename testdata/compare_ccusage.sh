#!/bin/sh
# Compares the tokens that logtool counts in a home of Claude Code with ccusage, a program
# that reads the same files. It needs node and npm, and Linux on x86-64.
# Usage: testdata/compare_ccusage.sh [HOME]
# HOME is a folder with projects/; the default is testdata/ccusage/home: answers on several lines, a
# fast answer, a fork, an older resume, an aside and a sub-agent that repeat lines of a
# session, and calls that only progress records have. It fails if a sum differs without
# an explanation; compare.py has the explanations.
#
# ccusage daily is compared. ccusage session and ccusage blocks leave out progress records,
# and count an answer again that an aside repeats with other request ids.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
home=${1:-$here/ccusage/home}
test -d "$home/projects" || { echo "$home has no folder projects" >&2; exit 1; }
home=$(cd "$home" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
npm install --prefix "$tmp" --no-audit --no-fund --ignore-scripts ccusage@20.0.24 >"$tmp/npm" 2>&1 || { cat "$tmp/npm" >&2; exit 1; }
(cd "$here/.." && go build -o "$tmp/logtool" ./cmd/logtool)
HOME="$tmp/nobody" CLAUDE_CONFIG_DIR="$home" "$tmp/node_modules/.bin/ccusage" claude daily --json --offline >"$tmp/theirs"
status=0
for store in log log.db; do
    "$tmp/logtool" --store "$tmp/$store" import --format claude "$home/projects" >"$tmp/import"
    "$tmp/logtool" --store "$tmp/$store" stats --json >"$tmp/ours"
    python3 "$here/ccusage/compare.py" "$home" "$tmp/theirs" "$tmp/ours" || status=1
done
exit "$status"
