#!/usr/bin/env python3
"""Counts Codex transcripts, independently of the importer.

Prints a line of JSON for each session in the files and folders named: user
messages, responses of the model, tool calls, tool results and tokens on the active
path, included what a fork has from its parent: copies, or the lines of its base. A response is a run of items of the
model that no result, message or count of tokens parts. Tokens are the last usage
of each count whose total is a new one. A rollback drops prompts, and what follows.
A turn is a task, or a prompt outside of tasks. The durations and sub-agents of copies do
not count.
"""
import json, re, sys

from countlib import files, follow, heading, letters, moment, records, show, states, zero

CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
OUTPUTS = tuple(c + "_output" for c in CALLS) + ("tool_search_output",)
SERVER = ("web_search_call", "image_generation_call", "file_search_call", "code_interpreter_call", "mcp_call")

def unwrapped(r):
    """The type and the payload, also of older versions, which have bare items."""
    if "payload" in r:
        return r.get("type"), r["payload"]
    if "type" in r:
        return "response_item", r
    return ("state" if "record_type" in r else "session_meta"), r

def prompts(p):
    """Whether a message of the user's is what the user said."""
    content = p.get("content")
    text = content if isinstance(content, str) else "".join(b.get("text", "") for b in content)
    return not re.match(r"\s*(# AGENTS.md instructions (for |\n)|<(recommended_plugins|app-context|user_instructions|environment_context|skill|"
                        r"user_shell_command|user_action|turn_aborted|subagent_notification|subagents|goal_context)>"
                        r"|<hook_prompt|<codex_internal_context)", text)

TEXTS = ("text", "input_text", "output_text")

def text(p):
    content = p.get("content")
    return content if isinstance(content, str) else "".join(b.get("text") or "" for b in content or [] if b.get("type") in TEXTS)

def own_or_copied(path):
    """The records, and whether each is a copy from the parent of a fork: up to the first turn of the session itself."""
    header, copied = None, False
    for r in records(path):
        kind, p = unwrapped(r)
        if kind == "session_meta":
            base = p.get("history_base") if not header else None
            header = header or {**p, "at": moment(r.get("timestamp"))}
            if base and base["thread_id"] in found:
                yield r, False
                for b, _ in own_or_copied(found[base["thread_id"]]):
                    if b["type"] != "session_meta" and b["ordinal"] < base["end_ordinal_exclusive"]:
                        yield b, True
                header["forked_from_id"] = None
                continue
            copied = copied or bool(header.get("forked_from_id")) or p["id"] != header["id"]
        elif copied and (kind == "turn_context" or p.get("type") in ("task_started", "turn_started")):
            turn, own = p.get("turn_id") or "", header["id"]
            if len(turn) == len(own) == 36 and turn[14] == own[14] == "7":
                copied = turn < own
            else:
                copied = moment(r.get("timestamp")) - header["at"] <= 10**9
            if not copied:
                header["forked_from_id"] = None
        yield r, copied

def walk(path):
    """The marks on the active path: (kind, tokens or whether it prompts, how long the text is, time, payload)."""
    marks, total = [], None
    for r, copied in own_or_copied(path):
        kind, p = unwrapped(r)
        name = p.get("type") if kind in ("response_item", "event_msg") else kind
        def mark(kind, what=None, length=0):
            marks.append((kind, what, length, None if copied else moment(r.get("timestamp")), p))
        if kind == "response_item" and name == "message":
            mark(p["role"], p["role"] == "user" and prompts(p), letters(p.get("content"), TEXTS))
        elif kind == "response_item" and name == "agent_message":
            mark("user", True, letters(p.get("content"), TEXTS) or len(p.get("message") or ""))
        elif kind == "response_item" and name in CALLS:
            mark("call")
        elif kind == "response_item" and name in OUTPUTS:
            mark("result")
        elif kind == "response_item" and name in SERVER:
            mark("assistant")
        elif kind == "response_item" and name == "reasoning":
            if p.get("encrypted_content") or any(b.get("text") for b in (p.get("summary") or []) + (p.get("content") or [])):
                mark("assistant")
        elif name == "token_count" and p.get("info") and p["info"]["total_token_usage"] != total:
            total = p["info"]["total_token_usage"]
            mark("tokens", p["info"]["last_token_usage"])
        elif name in ("task_started", "turn_started"):
            mark("turn")
        elif name == "entered_review_mode":
            mark("review")
        elif name in ("task_complete", "turn_complete", "turn_aborted", "compacted"):
            mark("end", name)
        elif name == "thread_rolled_back":
            marks = rolled_back(marks, p["num_turns"])
    return marks

def rolled_back(marks, turns):
    asked = [i for i, m in enumerate(marks) if m[0] == "user" and m[1]]
    if not asked:
        return marks
    cut = asked[max(0, len(asked) - turns)]
    before = max([i for i in range(cut) if marks[i][0] == "turn"], default=None)
    between = marks[before + 1:cut] if before is not None else []
    said = any(m[0] in ("user", "developer", "assistant", "system") for m in between)
    ended = any(m[0] == "end" or m[0] == "user" and m[1] for m in between)
    if before is not None and not ended and (cut != asked[0] or not said):
        cut = before
    return marks[:cut] + [("end", "rolled back", 0, None, {})]

def title(path):
    """The newest name of the thread, else what the first prompt asks for, or the first task from another agent.

    Prompts that were copied from a parent count only without own ones, and never for a sub-agent."""
    lines = [(*unwrapped(r), copied) for r, copied in own_or_copied(path)]
    meta = next(p for kind, p, _ in lines if kind == "session_meta")
    names = [p.get("thread_name", "").strip() for _, p, _ in lines if p.get("type") == "thread_name_updated" and p.get("thread_id", meta["id"]) == meta["id"]]
    spawned = isinstance(meta.get("source"), dict) and "subagent" in meta["source"] or bool(meta.get("parent_thread_id"))
    asked, copies = [], []
    for kind, p, copied in lines:
        if kind != "response_item":
            continue
        if p.get("type") == "agent_message" and spawned:
            (copies if copied else asked).append(heading(text(p).split("\nPayload:", 1)[-1]) or p.get("recipient", "").split("/")[-1])
        elif p.get("type") == "message" and p.get("role") == "user" and prompts(p):
            (copies if copied else asked).append(heading(text(p).split("## My request for Codex:", 1)[-1]))
    asked = [t for t in asked if t] or [t for t in copies if t and not spawned]
    return ([n for n in names if n] or asked[:1] or [""])[-1]

def children(lines):
    """The states of sub-agents, by the ids of their calls."""
    found, agents, tasks, named = {}, {}, {}, {} # states, threads, names of tasks by call; names of tools
    def ends(thread, status, closed=False):
        for id in [i for i, t in agents.items() if t == thread and found[i] in ("requested", "started")][:1]:
            if isinstance(status, dict):
                found[id] = "completed" if "completed" in status else "failed" if "errored" in status else "canceled" if closed else found[id]
            elif closed or status in ("shutdown", "interrupted"):
                found[id] = "canceled"
    for kind, p in lines:
        name, id = p.get("type"), p.get("call_id")
        if kind == "response_item" and name in CALLS:
            named[id] = p.get("name")
            if p.get("name") == "spawn_agent":
                found.setdefault(id, "requested")
                tasks[id] = loaded(p.get("arguments")).get("task_name", "").split("/")[-1]
        elif kind == "response_item" and name in OUTPUTS:
            said = p.get("output") if isinstance(p.get("output"), str) else text({"content": p.get("output")})
            if named.get(id) == "spawn_agent" and found[id] == "requested" and id not in agents:
                if loaded(said).get("agent_id"):
                    found[id], agents[id] = "started", loaded(said)["agent_id"]
                elif said and not said.startswith(("{", "You are the newly spawned agent")):
                    found[id] = "failed"
                tasks[id] = loaded(said).get("task_name", tasks[id]).split("/")[-1]
            elif (named.get(id) or "").startswith("wait"):
                for thread, status in (loaded(said).get("status") or {}).items() if isinstance(loaded(said).get("status"), dict) else ():
                    ends(thread, status)
        elif kind == "response_item" and name == "message" and p["role"] == "user":
            note = re.fullmatch(r"\s*<subagent_notification>(.*)</subagent_notification>\s*", text(p), re.S)
            if note:
                ends(loaded(note[1]).get("agent_id") or loaded(note[1]).get("agent_path"), loaded(note[1]).get("status"))
        elif kind == "response_item" and name == "agent_message" and text(p).strip().startswith("Message Type: FINAL_ANSWER"):
            author = p.get("author", "").split("/")[-1]
            for id in [i for i in sorted(found) if tasks.get(i) == author and found[i] in ("requested", "started")][:1]:
                found[id] = "completed"
        elif name == "collab_agent_spawn_end" or name == "sub_agent_activity" and p.get("kind") == "started":
            id = id if name == "collab_agent_spawn_end" else p.get("event_id") or p.get("agent_thread_id")
            thread = p.get("new_thread_id") if name == "collab_agent_spawn_end" else p.get("agent_thread_id")
            if id and id not in agents and found.get(id) in (None, "requested"):
                found[id], agents[id] = "started" if thread else "failed", thread
                tasks[id] = p.get("agent_path", tasks.get(id, "")).split("/")[-1]
        elif name == "collab_waiting_end":
            for thread, status in (p.get("statuses") or {}).items():
                ends(thread, status)
        elif name == "collab_close_end":
            ends(p.get("receiver_thread_id"), p.get("status"), True)
    return found

def loaded(text):
    """The JSON object of a text, else an empty one."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError):
        value = {}
    return value if isinstance(value, dict) else {}

def count(path):
    c, items = zero(), []
    responding = False
    for n, (kind, what, length, at, p) in enumerate(walk(path)):
        if kind == "tokens":
            read, written = what.get("cached_input_tokens", 0), what.get("cache_write_input_tokens", 0)
            c["input"] += max(0, what["input_tokens"] - read - written)
            c["output"] += what["output_tokens"]
            c["cache_read"] += read
            c["cache_write"] += written
            items.append(("step", at, None, ()))
        elif kind in ("assistant", "call"):
            response = response if responding else n
            c["assistant"] += not responding
            c["calls"] += kind == "call"
            items.append(("answer", at, response, [p.get("call_id")] if kind == "call" else []))
        elif kind == "review":
            items.append(("asked", at, None, ()))
        elif kind in ("turn", "end"):
            items.append(("begin" if kind == "turn" else "end" if what not in ("compacted", "rolled back") else "wait", at, p.get("duration_ms"), ()))
        elif kind == "user":
            items.append(("ask" if what and p.get("type") != "agent_message" else "context", at, None, ()))
        else:
            items.append((kind if kind == "result" else "other", at, None, [p.get("call_id")]))
        c["user"] += kind == "user"
        c["said"] += length if kind == "user" else 0
        c["answered"] += length if kind == "assistant" else 0
        c["results"] += kind == "result"
        responding = kind in ("assistant", "call")
    follow(c, items)
    lines = [unwrapped(r) for r, copied in own_or_copied(path) if not copied]
    c["title"], c["children"] = title(path), states(children(lines))
    return c

found = {}
for path in files(sys.argv[1:], ".jsonl"):
    for kind, p in map(unwrapped, records(path)):
        if kind == "session_meta":
            found[p["id"]] = path
            break
show({session: count(path) for session, path in found.items()})
