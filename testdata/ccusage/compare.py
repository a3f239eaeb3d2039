#!/usr/bin/env python3
"""Compares token sums of a Claude home: compare.py HOME CCUSAGE LOGTOOL.

CCUSAGE is the output of ccusage daily --json, LOGTOOL the output of logtool stats --json.
The script counts the files itself, by two rules:

  each answer once  lines with one message id are one answer, in whichever files they are;
                    the line with the most tokens counts
  as ccusage        the same, but lines without a request id are one answer only if their
                    session and time are equal too, and cache writes are the sum of the
                    members of cache_creation

logtool must say the first, ccusage the second. So a difference between them is explained.
"""
import json, os, sys

KINDS = ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"]
OF_CCUSAGE = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens"]
OF_LOGTOOL = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"]

def answers(home):
    """Each line with an answer, and its message."""
    for folder, _, names in sorted(os.walk(os.path.join(home, "projects"))):
        for name in sorted(n for n in names if n.endswith(".jsonl")):
            with open(os.path.join(folder, name), encoding="utf-8") as lines:
                for line in lines:
                    try:
                        record = json.loads(line)
                    except ValueError:
                        continue
                    data = record.get("data")
                    if record.get("type") == "progress" and isinstance(data, dict):
                        record = data.get("message")
                    message = record.get("message") if isinstance(record, dict) else None
                    if isinstance(message, dict) and isinstance(message.get("usage"), dict):
                        yield record, message

def counted(usage, nested):
    sums = [usage.get(kind) or 0 for kind in KINDS]
    if nested and isinstance(usage.get("cache_creation"), dict):
        sums[3] = sum(usage["cache_creation"].values())
    return sums

def total(lines, as_ccusage):
    most = {}
    for n, (record, message) in enumerate(lines):
        key = n if message.get("id") is None else message["id"]
        if as_ccusage and record.get("requestId") is None and not record.get("isSidechain"):
            key = (key, record.get("sessionId"), record.get("timestamp"))
        sums = counted(message["usage"], as_ccusage)
        if sum(sums) >= sum(most.get(key, [0])):
            most[key] = sums
    return [sum(column) for column in zip(*most.values())]

def same(name, got, want):
    print(f"{name:8}", *(f"{kind} {n:,}" for kind, n in zip(OF_LOGTOOL, got)), "the same" if got == want else f"want {want}")
    return got == want

home, theirs, ours = sys.argv[1:]
lines = list(answers(home))
with open(theirs) as f:
    theirs = json.load(f)["totals"]
with open(ours) as f:
    ours = json.load(f)["total"]["usage"]
ok = same("ccusage", [theirs[k] for k in OF_CCUSAGE], total(lines, True))
ok &= same("logtool", [ours.get(k, 0) for k in OF_LOGTOOL], total(lines, False))
sys.exit(not ok)
