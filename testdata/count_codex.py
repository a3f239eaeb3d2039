#!/usr/bin/env python3
"""Counts Codex transcripts, independently of the importer.

Prints a line of JSON for each session in the files and folders named: user
messages, responses of the model, tool calls, tool results and tokens on the active
path, copies that a fork begins with included. A response is a run of items of the
model that no result, message or count of tokens parts. Tokens are the last usage
of each count whose total is a new one. A rollback drops prompts, and what follows.
"""
import re, sys

from countlib import files, letters, records, show, zero

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
    return not re.match(r"\s*(# AGENTS.md instructions for |<(user_instructions|environment_context|skill|"
                        r"user_shell_command|user_action|turn_aborted|subagent_notification|subagents|goal_context)>"
                        r"|<hook_prompt|<codex_internal_context)", text)

def walk(path):
    """The marks on the active path: (kind, tokens or whether it prompts, how long the text is)."""
    marks, total, turn = [], None, None
    for kind, p in map(unwrapped, records(path)):
        name = p.get("type") if kind in ("response_item", "event_msg") else kind
        if kind == "response_item" and name == "message":
            role = p["role"]
            marks.append((role, role == "user" and prompts(p), letters(p.get("content"), ("text", "input_text", "output_text"))))
        elif kind == "response_item" and name == "agent_message":
            marks.append(("user", True, letters(p.get("content"), ("text", "input_text", "output_text")) or len(p.get("message") or "")))
        elif kind == "response_item" and name in CALLS:
            marks.append(("call", None, 0))
        elif kind == "response_item" and name in OUTPUTS:
            marks.append(("result", None, 0))
        elif kind == "response_item" and name in SERVER:
            marks.append(("assistant", None, 0))
        elif kind == "response_item" and name == "reasoning":
            if p.get("encrypted_content") or any(b.get("text") for b in (p.get("summary") or []) + (p.get("content") or [])):
                marks.append(("assistant", None, 0))
        elif name == "token_count" and p.get("info") and p["info"]["total_token_usage"] != total:
            total = p["info"]["total_token_usage"]
            marks.append(("tokens", p["info"]["last_token_usage"], 0))
        elif name in ("task_started", "turn_started"):
            marks.append(("turn", None, 0))
        elif name in ("task_complete", "turn_complete", "turn_aborted", "compacted"):
            marks.append(("end", None, 0))
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
    return marks[:cut] + [("end", None, 0)]

def count(path):
    c = zero()
    responding = False
    for kind, what, length in walk(path):
        if kind == "tokens":
            read, written = what.get("cached_input_tokens", 0), what.get("cache_write_input_tokens", 0)
            c["input"] += max(0, what["input_tokens"] - read - written)
            c["output"] += what["output_tokens"]
            c["cache_read"] += read
            c["cache_write"] += written
        elif kind in ("assistant", "call"):
            c["assistant"] += not responding
            c["calls"] += kind == "call"
        c["user"] += kind == "user"
        c["said"] += length if kind == "user" else 0
        c["answered"] += length if kind == "assistant" else 0
        c["results"] += kind == "result"
        responding = kind in ("assistant", "call")
    return c

found = {}
for path in files(sys.argv[1:], ".jsonl"):
    for kind, p in map(unwrapped, records(path)):
        if kind == "session_meta":
            found[p["id"]] = path
            break
show({session: count(path) for session, path in found.items()})
