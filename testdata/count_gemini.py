#!/usr/bin/env python3
"""Counts sessions of Gemini CLI, independently of the importer.

Prints a line of JSON for each session in the files and folders named: messages of
the user and of the model, tool calls, tool results, tokens, turns and model calls of
what is not rewound, and the title; costs are not told. Tokens read from a cache are not in the input, thoughts
are in the output. A message with function responses repeats the results of the calls, and is not the user's. Of
several files of one session it takes the one with the most messages.
"""
import json, sys

from countlib import files, follow, heading, letters, moment, show, zero

def load(path):
    """The session's id, its messages and its summary."""
    try:
        with open(path, encoding="utf-8-sig") as f:
            text = f.read()
    except (OSError, ValueError):
        return None, [], None
    try:
        document = json.loads(text)
        if isinstance(document, dict) and isinstance(document.get("messages"), list):
            return document.get("sessionId"), document["messages"], document.get("summary")
    except ValueError:
        pass
    session, messages, summary = None, {}, None
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if not isinstance(record, dict):
            continue
        if "$rewindTo" in record:
            ids = list(messages)
            for id in ids[ids.index(record["$rewindTo"]) if record["$rewindTo"] in ids else 0:]:
                del messages[id]
        elif "id" in record:
            messages[record["id"]] = record
        elif "projectHash" in record:
            session = record.get("sessionId")
        for message in record.get("$set", {}).get("messages") or []:
            messages.setdefault(message["id"], message)
        summary = record.get("summary") or record.get("$set", {}).get("summary") or summary
    return session, list(messages.values()), summary

def count(messages, summary):
    c, items = zero(), []
    messages = [m for m in messages if m["type"] != "user" or not repeats(m.get("content"))]
    asked = [letters_of(m.get("content")) for m in messages if m["type"] == "user" and not context(m)]
    c["title"] = heading(summary or "") or next((heading(a) for a in asked), "")
    for m in messages:
        at, ids = moment(m.get("timestamp")), [call.get("id") for call in m.get("toolCalls") or []]
        if m["type"] in ("user", "gemini"):
            items.append(("answer" if m["type"] == "gemini" else "context" if context(m) else "ask", at, m["id"], ids))
        items += [("result", max(at, moment(call.get("timestamp")) or at), None, [call.get("id")]) for call in m.get("toolCalls") or [] if call.get("result") is not None]
        c["user"] += m["type"] == "user"
        c["said" if m["type"] == "user" else "answered"] += m["type"] in ("user", "gemini") and letters(m.get("content"), (None, "text"))
        if m["type"] != "gemini":
            continue
        calls, tokens = m.get("toolCalls") or [], m.get("tokens") or {}
        c["assistant"] += 1
        c["calls"] += len(calls)
        c["results"] += sum(call.get("result") is not None for call in calls)
        c["input"] += tokens.get("input", 0) - tokens.get("cached", 0) + tokens.get("tool", 0)
        c["cache_read"] += tokens.get("cached", 0)
        c["output"] += tokens.get("output", 0) + tokens.get("thoughts", 0)
    follow(c, items)
    return c

def repeats(content):
    """Whether content is function responses, and maybe the files that they returned."""
    return isinstance(content, list) and any("functionResponse" in b for b in content if isinstance(b, dict))

def context(m):
    return m["type"] == "user" and letters_of(m.get("content")).lstrip().startswith(("<session_context>", "This is the Gemini CLI. We are setting up"))

def letters_of(content):
    return content if isinstance(content, str) else "".join(b.get("text") or "" for b in content or [])

sessions = {}
for path in files(sys.argv[1:]):
    session, messages, summary = load(path)
    if session and any(m.get("type") in ("user", "gemini") for m in messages) and len(messages) > len(sessions.get(session, ([], None))[0]):
        sessions[session] = messages, summary
show({session: count(*of) for session, of in sessions.items()})
