#!/bin/bash
# Does nine jobs of a newcomer with logtool, on an import of transcripts, and prints
# each command with its time. It fails at the first job that fails.
# Usage: testdata/newcomer_jobs.sh FILE_OR_FOLDER...
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$tmp"' EXIT
(cd "$here/.." && go build -o "$tmp/logtool" ./cmd/logtool)
export PATH="$tmp:$PATH" HOME="$tmp"
logtool --store "$tmp/log" import "$@" >"$tmp/out" 2>&1 || true # files that are refused are named
cd "$tmp"

job() { # NAME COMMAND...: the command has no --store
    local name=$1 begun lines; shift
    begun=$(date +%s%N)
    "$@" --store "$tmp/log" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/err"; echo "failed: $name: $*"; exit 1; }
    lines=$(wc -l <"$tmp/out")
    printf '%5d ms  %-32s %s (%d lines)\n' $((($(date +%s%N) - begun) / 1000000)) "$name" "$*" "$lines"
}
# The largest session, and the two largest ones with one title: two attempts at one task.
logtool --store "$tmp/log" ls --limit 0 --json | python3 -c "
import json, sys
roots = sorted((d for d in map(json.loads, sys.stdin) if d.get('kind') == 'root' and d.get('title')), key=lambda d: -d['events'])
print(roots[0]['session'])
for i, d in enumerate(roots):
    other = [o for o in roots[i + 1:] if o['title'] == d['title'] and o.get('source') == d.get('source')]
    if other:
        print(d['session'], other[0]['session'])
        break" >ids
read -r large <ids
read -r one other < <(sed 1d ids)

job "find a talk about a bug" logtool search "bug"
job "this week by model" logtool cost --per model --since 7d
job "failed calls" logtool calls --failed
job "changed files" logtool files "$large"
job "compare two attempts" logtool diff "$one" "$other"
job "share without paths" logtool export "$large" --format html --mask-paths --mask-secrets -o "$tmp/share.html"
logtool --store "$tmp/log" tail -f "$large" -n 0 >"$tmp/live" &
sleep 1
begun=$(date +%s%N)
job "watch live: an event is written" logtool append "$large" "seen by tail -f"
until grep -q "seen by tail -f" "$tmp/live"; do sleep 0.01; done
echo "$((($(date +%s%N) - begun) / 1000000)) ms until tail -f has shown it"
kill %1
job "move to a new machine: copy" logtool store backup "$tmp/moved"
job "clean up: list" logtool store retire --idle 90d --archive "$tmp/archive"
job "clean up: archive and remove" logtool store retire --idle 90d --archive "$tmp/archive" --yes
rm -rf "$tmp/log"; mv "$tmp/moved" "$tmp/log"
job "move to a new machine: check" logtool verify
