#!/usr/bin/env python3
"""Counts sessions in documents of several formats, independently of the importers.

Usage: count_documents.py FORMAT FILE_OR_FOLDER...
Prints a line of JSON for each session: messages of the user and of the model, tool
calls, tool results, tokens and nano-dollars, of the path that ends at the head.
"""
import hashlib, json, os, re, sys

from countlib import files, show, zero

def plain(name):
    return re.sub(r"[^A-Za-z0-9_.]", "-", name)[:40].strip("-.")

def stem(path):
    return plain(os.path.splitext(os.path.basename(path))[0])

def digits(path, name):
    return hashlib.sha256((os.path.abspath(path) + "\0" + name).encode()).hexdigest()[:8]

def values(path):
    """The JSON values of a file: a document, or one on each line."""
    with open(path, encoding="utf-8-sig") as f:
        text = f.read()
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]

def nano(dollars):
    return round((dollars or 0) * 1e9)

def add(c, usage, cost=0):
    """Adds tokens whose prompt holds what was read from a cache or written to it."""
    read, write = usage.get("cache_read_tokens") or 0, usage.get("cache_write_tokens") or 0
    c["input"] += (usage.get("prompt_tokens") or 0) - read - write
    c["output"] += usage.get("completion_tokens") or 0
    c["cache_read"] += read
    c["cache_write"] += write
    c["cost"] += cost

def swe_agent(path, document):
    c, history, steps = zero(), document["history"], document.get("trajectory") or []
    info = document.get("info") or {}
    stats = info.get("model_stats") or {}
    answers = [m for m in history if m["role"] == "assistant"]
    plain_text = [m for m in answers if not m.get("tool_calls") and m.get("action")]
    c["assistant"] = len(answers)
    c["calls"] = len(plain_text) + sum(len(m.get("tool_calls") or []) for m in answers)
    before = None
    for m in history:
        observed = m["role"] == "tool" or m["role"] == "user" and any(before is a for a in plain_text)
        c["results"] += observed
        c["user"] += m["role"] == "user" and not observed
        before = m
    if any(before is a for a in plain_text) and info.get("exit_status") and len(steps) >= len(answers):
        c["results"] += 1 # the last observation stands in its step alone
    c["input"], c["output"], c["cost"] = stats.get("tokens_sent", 0), stats.get("tokens_received", 0), nano(stats.get("instance_cost"))
    yield stem(path) + "-" + digits(path, ""), c

def mini_swe_agent(path, document):
    c = zero()
    messages = document if isinstance(document, list) else document["messages"]
    ran = False
    for m in messages:
        commands = re.findall(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", m["content"] or "", re.S)
        c["assistant"] += m["role"] == "assistant"
        c["user"] += m["role"] == "user" and not ran
        c["results"] += m["role"] == "user" and ran or m["role"] == "tool"
        ran = m["role"] == "assistant" and not m.get("tool_calls") and len(commands) == 1
        c["calls"] += ran + len(m.get("tool_calls") or [])
        extra = m.get("extra") or {}
        if m["role"] == "assistant":
            usage = (extra.get("response") or {}).get("usage") or {}
            read = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
            add(c, {**usage, "cache_read_tokens": read})
    own = ""
    if isinstance(document, dict):
        c["cost"] = nano(document["info"]["model_stats"]["instance_cost"])
        own = document.get("instance_id") or ""
    yield (plain(own) or stem(path)) + "-" + digits(path, own), c

def tau_bench(path, document):
    for attempt in document:
        c = zero()
        for m in attempt["traj"]:
            c["user"] += m["role"] == "user"
            c["assistant"] += m["role"] == "assistant"
            c["calls"] += len(m.get("tool_calls") or [])
            c["results"] += m["role"] == "tool"
        c["cost"] = nano(attempt["info"].get("user_cost"))
        name = "task-%s-trial-%s" % (attempt["task_id"], attempt["trial"])
        yield stem(path) + "-" + plain(name) + "-" + digits(path, name), c

def openhands(path, document):
    c, responses, called = zero(), set(), set()
    for e in document["history"]:
        call = e.get("tool_call_metadata") or {}
        c["user"] += e.get("action") == "message" and e["source"] == "user"
        if e.get("action") and call:
            responses.add(call["model_response"]["id"])
            called.add(call["tool_call_id"])
            c["calls"] += 1
        c["results"] += bool(e.get("observation") and call and call["tool_call_id"] in called)
    c["assistant"] = len(responses)
    metrics = document.get("metrics") or {}
    add(c, metrics.get("accumulated_token_usage") or {}, nano(metrics.get("accumulated_cost")))
    own = document.get("instance_id") or ""
    yield (plain(own) or stem(path)) + "-" + digits(path, own), c

def oasst(path, document):
    c, m = zero(), document.get("prompt") or document
    session = document.get("message_tree_id") or m["message_id"]
    while m:
        c["assistant" if m["role"] == "assistant" else "user"] += 1
        # The best is the one of the lowest rank, else the last.
        replies = list(enumerate(m.get("replies") or []))
        replies.sort(key=lambda r: (bool(r[1].get("deleted")), r[1].get("rank") is None, r[1].get("rank") or 0, -r[0]))
        m = replies[0][1] if replies else None
    yield session, c

def inspect(path, document):
    task = document["eval"]
    for sample in document.get("samples") or []:
        c = zero()
        for m in sample["messages"]:
            c["user"] += m["role"] == "user"
            c["assistant"] += m["role"] == "assistant"
            c["calls"] += len(m.get("tool_calls") or [])
            c["results"] += m["role"] == "tool"
        used = list((sample.get("model_usage") or {}).values()) or [(sample.get("output") or {}).get("usage") or {}]
        for usage in used:
            c["input"] += usage.get("input_tokens", 0)
            c["output"] += usage.get("output_tokens", 0)
            c["cache_read"] += usage.get("input_tokens_cache_read") or 0
            c["cache_write"] += usage.get("input_tokens_cache_write") or 0
        name = [task.get("run_id", ""), task.get("task_id", ""), task["task"], str(sample["id"]), str(sample["epoch"])]
        session = plain("-".join(name[2:])) + "-" + hashlib.sha256("\0".join(name).encode()).hexdigest()[:8]
        yield sample.get("uuid") or session, c

def opencode(path, document):
    c = zero()
    for m in document["messages"]:
        c["user"] += m["info"]["role"] == "user"
        if m["info"]["role"] != "assistant":
            continue
        c["assistant"] += 1
        tools = [p["state"]["status"] for p in m["parts"] if p["type"] == "tool"]
        c["calls"] += len(tools)
        c["results"] += sum(status in ("completed", "error") for status in tools)
        for step in [p for p in m["parts"] if p["type"] == "step-finish"] or [m["info"]]:
            c["input"] += step["tokens"]["input"]
            c["output"] += step["tokens"]["output"] + step["tokens"]["reasoning"]
            c["cache_read"] += step["tokens"]["cache"]["read"]
            c["cache_write"] += step["tokens"]["cache"]["write"]
            c["cost"] += nano(step["cost"])
    yield document["info"]["id"], c

count = globals()[sys.argv[1].replace("-", "_")]
sessions = {}
for path in files(sys.argv[2:]):
    if os.path.basename(path) != "LICENSE":
        sessions.update(s for value in values(path) for s in count(path, value))
show(sessions)
