#!/bin/sh
# Compares logs of a transcript that grew: each of its earlier versions and then the
# last, all of them one after the other, and the last and then an earlier one must
# give the same log as the last alone, but for salts, hashes, how events were
# appended, and which file it was. On both stores.
# Usage: testdata/compare_growth.sh [--format NAME] VERSION...
# Versions are files of one session, in whatever order: the shorter came first. Of
# one file, versions are made by cutting it off behind some of its lines.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
format=auto
if [ "${1-}" = --format ]; then format=$2; shift 2; fi
for i in "$@"; do test -f "$i" || { echo "no such file: $i" >&2; exit 1; }; done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
(cd "$here/.." && go build -o "$tmp/logtool" ./cmd/logtool)
if [ $# = 1 ]; then
    lines=$(wc -l <"$1")
    for part in 1 3 7; do
        mkdir "$tmp/$part"
        head -n $((lines * part / 8)) "$1" >"$tmp/$part/$(basename "$1")"
    done
    set -- "$tmp"/[137]/* "$1"
fi
ls -Sr -- "$@" >"$tmp/versions"
last=$(tail -n 1 "$tmp/versions")

said() { # STORE FILE: all that the log says
    "$tmp/logtool" --store "$1" export --all | python3 -c '
import json, sys
for line in sys.stdin:
    e = json.loads(line)
    for name in ("crc", "salt", "hash", "more"):
        e.pop(name, None)
    e.get("metadata", {}).get("origin", {}).pop("source", None)
    if e.get("type") == "session_started":
        e["data"].get("source", {}).pop("path", None)
    print(json.dumps(e))' >"$2"
}

import() { # STORE VERSION
    "$tmp/logtool" --store "$1" import --format "$format" "$2" >>"$tmp/tables" 2>&1 || { cat "$tmp/tables"; exit 1; }
}

same() { # STORE WHAT: compares with the last alone
    said "$1" "$tmp/grown"
    diff "$tmp/alone" "$tmp/grown" >"$tmp/diff" || { head -c 4000 "$tmp/diff"; echo "another log: $2" >&2; exit 1; }
    echo "$2: the same $(wc -l <"$tmp/grown") events"
}

for kind in jsonl db; do
    store=$tmp/alone-store.$kind
    import "$store" "$last"
    said "$store" "$tmp/alone"
    n=0
    while read -r version; do
        n=$((n + 1))
        import "$store" "$version"
        import "$tmp/step.$kind" "$version"
        import "$tmp/$n.$kind" "$version"
        import "$tmp/$n.$kind" "$last"
        same "$tmp/$n.$kind" "$kind: version $n of $(wc -l <"$version") lines, then the last"
    done <"$tmp/versions"
    same "$tmp/step.$kind" "$kind: one after the other"
    same "$store" "$kind: the last, then all others"
    "$tmp/logtool" --store "$tmp/step.$kind" verify
done
