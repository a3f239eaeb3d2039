#!/usr/bin/env python3
"""Counts sessions of pi, independently of the importer.

Prints a line of JSON for each session in the files and folders named: user
messages, assistant messages, tool calls, tool results, tokens and cost (in
nano-dollars) on the path from the last line back. Of several files of one
session it takes the longest.
"""
import json, os, sys

def records(path):
    decoder = json.JSONDecoder()
    with open(path, encoding="utf-8-sig", errors="replace") as f:
        for line in f.read().split("\n"):
            line = line.strip()
            while line:
                try:
                    value, end = decoder.raw_decode(line)
                except ValueError:
                    break
                if isinstance(value, dict):
                    yield value
                line = line[end:].lstrip()

def path_of(entries):
    """The entries from the first to the last, along their parents."""
    by_id, before = {}, None
    parents = []
    for i, e in enumerate(entries):
        parent = before
        if e.get("id") and "parentId" in e:
            parent = None if e["parentId"] is None else by_id.get(e["parentId"], before)
        parents.append(parent)
        if e.get("id"):
            by_id[e["id"]] = i
        before = i
    at, path = before, []
    while at is not None:
        path.append(entries[at])
        at = parents[at]
    return path[::-1]

def count(entries):
    c = dict.fromkeys(("user", "assistant", "calls", "results", "input", "output", "cache_read", "cache_write", "cost"), 0)
    for e in path_of(entries):
        m = e.get("message") if e.get("type") == "message" else None
        if not isinstance(m, dict):
            continue
        content = m.get("content") if isinstance(m.get("content"), list) else []
        c["user"] += m.get("role") == "user"
        c["results"] += m.get("role") == "toolResult"
        if m.get("role") == "assistant":
            usage = m.get("usage") or {}
            c["assistant"] += 1
            c["calls"] += sum(b.get("type") == "toolCall" for b in content)
            for ours, theirs in (("input", "input"), ("output", "output"), ("cache_read", "cacheRead"), ("cache_write", "cacheWrite")):
                c[ours] += usage.get(theirs, 0)
            c["cost"] += round(usage.get("cost", {}).get("total", 0) * 1e9)
    return c

sessions = {}
for name in sys.argv[1:]:
    for folder, _, names in os.walk(name) if os.path.isdir(name) else [(os.path.dirname(name), [], [os.path.basename(name)])]:
        for file in sorted(names):
            try:
                all = list(records(os.path.join(folder, file)))
            except OSError:
                continue
            if not all or all[0].get("type") != "session" or not isinstance(all[0].get("id"), str):
                continue
            entries = all[1:]
            if len(entries) > len(sessions.get(all[0]["id"], [])):
                sessions[all[0]["id"]] = entries
for session, entries in sorted(sessions.items()):
    print(json.dumps({"session": session, **count(entries)}, separators=(",", ":")))
