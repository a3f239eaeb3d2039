#!/usr/bin/env python3
"""Counts sessions of pi, independently of the importer.

Prints a line of JSON for each session in the files and folders named: user
messages, assistant messages, tool calls, tool results, tokens and cost (in
nano-dollars) on the path from the last line back. Of several files of one
session it takes the longest.
"""
import sys

from countlib import files, letters, records, show, zero

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
    c = zero()
    for e in path_of(entries):
        m = e.get("message") if e.get("type") == "message" else None
        if not isinstance(m, dict):
            continue
        content = m.get("content") if isinstance(m.get("content"), list) else []
        c["user"] += m.get("role") == "user"
        c["said"] += m.get("role") == "user" and letters(m.get("content"))
        c["answered"] += m.get("role") == "assistant" and letters(m.get("content"))
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
for path in files(sys.argv[1:]):
    try:
        header, *entries = records(path)
    except (OSError, ValueError): # one that cannot be read, or is empty
        continue
    if header.get("type") != "session" or not isinstance(header.get("id"), str):
        continue
    if len(entries) > len(sessions.get(header["id"], [])):
        sessions[header["id"]] = entries
show({session: count(entries) for session, entries in sessions.items()})
