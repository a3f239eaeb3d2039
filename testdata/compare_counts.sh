#!/bin/sh
# Compares what logs hold after an import of transcripts with an independent
# count of the source files, on both stores: of each session the messages of the
# user and of the model, calls, results, tokens and cost on the active path, the
# messages that programs wrote in the user's name, the turns, the duration of model
# calls, the title and the states of sub-agents. A second import must change nothing.
# Usage: testdata/compare_counts.sh [--format NAME] FILE_OR_FOLDER...
# NAME is one that has a count_NAME.py, or one that count_documents.py counts.
# Without it, files are counted by the format that they are of, each format by
# itself. Files that the import refuses, and files whose session another file has,
# are named and left out. It fails if any count differs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
(cd "$here/.." && go build -o "$tmp/countlog" ./testdata/countlog)
failed=0

compare() { # FORMAT FILE...
    format=$1; shift
    : >"$tmp/left"
    "$tmp/countlog" --format "$format" --store "$tmp/first" --left-out "$tmp/left" "$@" >"$tmp/log"
    rm -rf "$tmp/first"*
    for i in "$@"; do
        shift
        grep -qxF -- "$i" "$tmp/left" || set -- "$@" "$i"
    done
    [ $# -gt 0 ] || return 0
    if [ -f "$here/count_$format.py" ]; then
        python3 "$here/count_$format.py" "$@" >"$tmp/source"
    else
        python3 "$here/count_documents.py" "$format" "$@" >"$tmp/source"
    fi
    for store in jsonl log.db; do
        rm -rf "$tmp/$store"*
        "$tmp/countlog" --format "$format" --store "$tmp/$store" "$@" >"$tmp/log"
        "$tmp/countlog" --format "$format" --store "$tmp/$store" "$@" >"$tmp/again"
        if diff "$tmp/source" "$tmp/log" && diff "$tmp/log" "$tmp/again"; then
            echo "$format, $store: $(python3 "$here/countlib.py" <"$tmp/log"): the sources say the same"
        else
            failed=1
        fi
    done
}

format=auto
if [ "${1-}" = --format ]; then format=$2; shift 2; fi
for i in "$@"; do test -e "$i" || { echo "no such file: $i" >&2; exit 1; }; done
"$tmp/countlog" --which --format "$format" "$@" >"$tmp/which"
for format in $(cut -f1 "$tmp/which" | sort -u); do
    set --
    while IFS="$(printf '\t')" read -r of path; do
        if [ "$of" = "$format" ]; then set -- "$@" "$path"; fi
    done <"$tmp/which"
    compare "$format" "$@"
done
exit "$failed"
