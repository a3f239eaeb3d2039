#!/usr/bin/env python3
"""Counts sessions of pi, independently of the importer.

Prints a line of JSON for each session in the files and folders named: user
messages, assistant messages, tool calls, tool results, tokens and cost (in
nano-dollars), turns and model calls on the path from the last line back. The durations
of copies from the parent of a fork do not count. Of several files of one session it
takes the longest.
"""
import sys

from countlib import files, follow, heading, letters, moment, records, show, zero

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

def copied(header, e):
    """Whether the entry is a copy from the parent of a fork. If the parent has no file here, nothing else has the entry."""
    at, parent = moment(e.get("timestamp")), header.get("parentSession") or header.get("branchedFrom") or ""
    return any(id in parent for id in sessions) and at is not None and at < moment(header["timestamp"])

def title(header, entries):
    """The newest name of the session, else the first thing that the user asks for, and of a fork asks anew."""
    entries = sorted(entries, key=lambda e: bool(copied(header, e)))
    names = [heading(e.get("name") or "") for e in entries if e.get("type") == "session_info"]
    asked = [said(e["message"].get("content")) for e in entries if e.get("type") == "message" and e["message"].get("role") == "user"]
    return ([n for n in names if n] or [heading(a) for a in asked if heading(a)][:1] or [""])[-1]

def said(content):
    return content if isinstance(content, str) else next((b["text"] for b in content or [] if heading(b.get("text") or "")), "")

def spend(c, usage):
    for ours, theirs in (("input", "input"), ("output", "output"), ("cache_read", "cacheRead"), ("cache_write", "cacheWrite")):
        c[ours] += usage.get(theirs, 0)
    c["cost"] += round(usage.get("cost", {}).get("total", 0) * 1e9)

def count(header, entries):
    c, items = zero(), []
    for e in path_of(entries):
        if e.get("type") == "compaction":
            spend(c, e.get("usage") or {}) # the answer that is the summary
        m = e.get("message") if e.get("type") == "message" else None
        if not isinstance(m, dict):
            continue
        calls = [b.get("id") for b in m["content"] if b.get("type") == "toolCall"] if isinstance(m.get("content"), list) else []
        kind = {"user": "ask", "assistant": "answer", "toolResult": "result", "bashExecution": "beside"}.get(m.get("role"), "other")
        at = moment(e.get("timestamp"))
        items.append((kind, None if copied(header, e) else at, len(items), [m.get("toolCallId")] if kind == "result" else calls))
        content = m.get("content") if isinstance(m.get("content"), list) else []
        c["user"] += m.get("role") == "user"
        c["said"] += m.get("role") == "user" and letters(m.get("content"))
        c["answered"] += m.get("role") == "assistant" and letters(m.get("content"))
        c["results"] += m.get("role") == "toolResult"
        if m.get("role") == "assistant":
            c["assistant"] += 1
            c["calls"] += sum(b.get("type") == "toolCall" for b in content)
            spend(c, m.get("usage") or {})
    follow(c, items)
    c["title"] = title(header, entries)
    return c

sessions = {}
for path in files(sys.argv[1:]):
    try:
        header, *entries = records(path)
    except (OSError, ValueError): # one that cannot be read, or is empty
        continue
    if header.get("type") != "session" or not isinstance(header.get("id"), str):
        continue
    if len(entries) > len(sessions.get(header["id"], (None, []))[1]):
        sessions[header["id"]] = header, entries
show({session: count(*of) for session, of in sessions.items()})
