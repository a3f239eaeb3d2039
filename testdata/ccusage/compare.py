#!/usr/bin/env python3
"""Compares the days of ccusage daily --json with those of logtool stats --json: compare.py THEIRS OURS."""
import json, sys

KINDS = {"inputTokens": "input_tokens", "outputTokens": "output_tokens", "cacheReadTokens": "cache_read_tokens",
         "cacheCreationTokens": "cache_write_tokens"}

with open(sys.argv[1]) as f:
    theirs = {day["date"]: {k: day[k] for k in KINDS} for day in json.load(f)["daily"]}
with open(sys.argv[2]) as f:
    days = json.load(f)["by_day"]
ours = {day: {k: t.get("usage", {}).get(v, 0) for k, v in KINDS.items()} for day, t in days.items()}
ours = {day: t for day, t in ours.items() if any(t.values())}

different = 0
for day in sorted(theirs.keys() | ours.keys()):
    for kind in KINDS:
        a, b = theirs.get(day, {}).get(kind, 0), ours.get(day, {}).get(kind, 0)
        if a != b:
            different += 1
            print(f"{day} {kind}: ccusage {a:,}, logtool {b:,}, difference {b - a:+,}")
total = ", ".join(f"{kind} {sum(t[kind] for t in theirs.values()):,}" for kind in KINDS)
print(f"{len(theirs)} days, {total}: " + (f"{different} numbers differ" if different else "the same"))
sys.exit(different > 0)
