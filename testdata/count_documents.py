#!/usr/bin/env python3
"""Counts sessions in documents of several formats, independently of the importers.

Usage: count_documents.py FORMAT FILE_OR_FOLDER...
Prints a line of JSON for each session: messages of the user and of the model, tool
calls, tool results, tokens and nano-dollars, turns and model calls of the path that ends
at the head, and the title.
"""
import hashlib, json, os, re, sqlite3, sys, zipfile

from countlib import files, follow, heading, letters, moment, show, zero

def plain(name):
    return re.sub(r"[^A-Za-z0-9_.]", "-", name)[:40].strip("-.")

def stem(path):
    return plain(os.path.splitext(os.path.basename(path))[0])

def digits(path, name):
    return hashlib.sha256((os.path.abspath(path) + "\0" + name).encode()).hexdigest()[:8]

def packed(path):
    """The document that a packed log of Inspect stands for."""
    with zipfile.ZipFile(path) as z:
        names = z.namelist()
        document = json.loads(z.read("header.json" if "header.json" in names else "_journal/start.json"))
        document["samples"] = [json.loads(z.read(n)) for n in dict.fromkeys(names) if n.startswith("samples/")]
    return document

def exported(path):
    """The sessions in a database of OpenCode, as exports."""
    with sqlite3.connect("file:%s?mode=ro" % path, uri=True) as db:
        for id, title, revert, created in db.execute("SELECT id, title, revert, time_created FROM session").fetchall():
            messages = []
            for name, data in db.execute("SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", (id,)).fetchall():
                parts = db.execute("SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (name,)).fetchall()
                messages.append({"info": {"id": name, **json.loads(data)}, "parts": [{"id": i, **json.loads(d)} for i, d in parts]})
            yield {"info": {"id": id, "title": title, "revert": json.loads(revert or "null"), "time": {"created": created}}, "messages": messages}

def values(path):
    """The JSON values of a file: a document, or one on each line."""
    if zipfile.is_zipfile(path):
        return [packed(path)]
    with open(path, "rb") as f:
        if f.read(15) == b"SQLite format 3":
            return list(exported(path))
    with open(path, encoding="utf-8-sig") as f:
        text = f.read()
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]

def plain_text(content):
    """The text of a content, without separators."""
    texts = content if isinstance(content, list) else [content]
    return "".join(t if isinstance(t, str) else t.get("text") or "" for t in texts if isinstance(t, (str, dict)))

def first_text(content):
    """The first text of a content that makes a title."""
    texts = content if isinstance(content, list) else [content]
    texts = [t if isinstance(t, str) else (t.get("text") or "") if t.get("type") in ("text", "input_text") else "" for t in texts if isinstance(t, (str, dict))]
    return next((heading(t) for t in texts if heading(t)), "")

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

def spend(c, usage):
    """Adds tokens as OpenAI and Anthropic tell them: OpenAI's input holds what was read from a cache."""
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    cached = details.get("cached_tokens") or 0
    c["input"] += (usage.get("prompt_tokens") or usage.get("input_tokens") or 0) - cached
    c["output"] += usage.get("completion_tokens") or usage.get("output_tokens") or 0
    c["cache_read"] += cached + (usage.get("cache_read_input_tokens") or 0)
    c["cache_write"] += usage.get("cache_creation_input_tokens") or 0

def swe_agent(path, document):
    c, history, steps = zero(), document["history"], document.get("trajectory") or []
    info = document.get("info") or {}
    stats = info.get("model_stats") or {}
    answers = [m for m in history if m["role"] == "assistant"]
    in_text = [m for m in answers if not m.get("tool_calls") and m.get("action")]
    c["assistant"] = len(answers)
    c["calls"] = len(in_text) + sum(len(m.get("tool_calls") or []) for m in answers)
    before, items = None, []
    for m in history:
        observed = m["role"] == "tool" or m["role"] == "user" and any(before is a for a in in_text)
        c["results"] += observed
        ids = m.get("tool_call_ids") or [m.get("tool_call_id") or "shell"]
        calls = [call["id"] for call in m.get("tool_calls") or []] or (["shell"] if any(m is a for a in in_text) else [])
        kind = "result" if observed else "ask" if m["role"] == "user" else "answer" if m["role"] == "assistant" else "other"
        items.append((kind, None, len(items), calls if m["role"] == "assistant" else ids))
        c["user"] += m["role"] == "user" and not observed
        c["said"] += m["role"] == "user" and not observed and letters(m["content"])
        if m["role"] == "assistant":
            thought = m.get("thought") or ""
            c["answered"] += letters(thought.strip() if any(m is a for a in in_text) else m["content"])
        before = m
    if any(before is a for a in in_text) and info.get("exit_status") and len(steps) >= len(answers):
        c["results"] += 1 # the last observation is in its step alone
        items.append(("result", None, None, ["shell"]))
    told = answers and steps and steps[-1].get("action") == answers[-1].get("action")
    for step in [] if told else steps[len(answers):]: # the last step is not in every history
        for name in ("assistant", "calls", "results"):
            c[name] += 1
        c["answered"] += letters((step.get("thought") or "").strip())
        items += [("answer", None, len(items), ["shell"]), ("result", None, None, ["shell"])]
    c["input"], c["output"], c["cost"] = stats.get("tokens_sent", 0), stats.get("tokens_received", 0), nano(stats.get("instance_cost"))
    asked = [m["content"] for m in history if m["role"] == "user"][:1]
    issue = plain_text(asked[0]).partition("\nISSUE:\n")[2] if asked else ""
    config = document.get("replay_config") or {}
    config = json.loads(config) if isinstance(config, str) else config
    problem = (config.get("problem_statement") or {}).get("text") or ""
    c["title"] = heading(problem) or heading(issue) or first_text(asked[0] if asked else "")
    follow(c, items)
    yield stem(path) + "-" + digits(path, ""), c

def mini_swe_agent(path, document):
    c = zero()
    messages = document if isinstance(document, list) else document["messages"]
    ran, items = False, []
    for m in messages:
        role, text = m.get("role"), m.get("content")
        commands = re.findall(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", text if isinstance(text, str) else "", re.S)
        answers = role == "assistant" or m.get("object") == "response"
        calls = m.get("tool_calls") or [i for i in m.get("output") or [] if answers and i["type"] == "function_call"]
        c["assistant"] += answers
        c["user"] += role == "user" and not ran
        c["said"] += role == "user" and not ran and letters(text)
        if role == "assistant":
            block = re.search(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", text or "", re.S)
            c["answered"] += len((text[:block.start()] + text[block.end():]).strip()) if len(commands) == 1 and not calls else letters(text)
        observed = role == "user" and ran or role == "tool" or m.get("type") == "function_call_output"
        c["results"] += observed
        ids = [call.get("id") or call.get("call_id") for call in calls] or ["shell"] * (len(commands) == 1)
        at = (m.get("extra") or {}).get("timestamp")
        at = round(at * 10**9) if at else None
        kind = "answer" if answers else "result" if observed else "ask" if role == "user" else "other"
        items.append((kind, at, len(items), ids if answers else [m.get("tool_call_id") or m.get("call_id") or "shell"]))
        c["title"] = c["title"] or (first_text(text) if kind == "ask" else "")
        ran = role == "assistant" and not calls and len(commands) == 1
        c["calls"] += ran + len(calls)
        if answers:
            usage = m.get("usage") or ((m.get("extra") or {}).get("response") or {}).get("usage") or {}
            spend(c, usage)
    own = ""
    follow(c, items)
    if isinstance(document, dict):
        c["cost"] = nano(document["info"]["model_stats"]["instance_cost"])
        own = document.get("instance_id") or ""
    yield (plain(own) or stem(path)) + "-" + digits(path, own), c

def tau2_bench(document):
    for attempt in document["simulations"]:
        c, items = zero(), []
        for m in attempt["messages"]:
            several = m.get("tool_messages") or [m]
            kind = {"user": "ask", "assistant": "answer", "system": "other"}.get(m["role"], "result")
            if kind != "result":
                items.append((kind, moment(m.get("timestamp")), len(items), [call["id"] for call in m.get("tool_calls") or []]))
            else:
                items += [(kind, moment(r.get("timestamp")), None, [r["id"]]) for r in several if r.get("requestor") != "user"]
            c["title"] = c["title"] or (first_text(m["content"]) if kind == "ask" else "")
            c["user"] += m["role"] == "user"
            c["assistant"] += m["role"] == "assistant"
            c["said"] += m["role"] == "user" and letters(m["content"])
            c["answered"] += m["role"] == "assistant" and letters(m["content"])
            c["results"] += sum(r["role"] == "tool" and r.get("requestor") != "user" for r in several)
            if m["role"] == "assistant":
                c["calls"] += len(m["tool_calls"] or [])
            add(c, m.get("usage") or {}) # of the agent and of the simulated user
        follow(c, items)
        c["cost"] = nano(attempt["agent_cost"]) + nano(attempt["user_cost"])
        yield attempt["id"], c

def tau_bench(path, document):
    if isinstance(document, dict):
        yield from tau2_bench(document)
        return
    for attempt in document:
        c, items = zero(), []
        for m in attempt["traj"]:
            kind = {"user": "ask", "assistant": "answer", "tool": "result"}.get(m["role"], "other")
            ids = [call["id"] for call in m.get("tool_calls") or []] if kind == "answer" else [m.get("tool_call_id")]
            items.append((kind, None, len(items), ids))
            c["title"] = c["title"] or (first_text(m["content"]) if kind == "ask" else "")
            c["user"] += m["role"] == "user"
            c["assistant"] += m["role"] == "assistant"
            c["said"] += m["role"] == "user" and letters(m["content"])
            c["answered"] += m["role"] == "assistant" and letters(m["content"])
            c["calls"] += len(m.get("tool_calls") or [])
            c["results"] += m["role"] == "tool"
        follow(c, items)
        c["cost"] = nano(attempt["info"].get("user_cost"))
        name = "task-%s-trial-%s" % (attempt["task_id"], attempt["trial"])
        yield stem(path) + "-" + plain(name) + "-" + digits(path, name), c

conversations = {} # of openhands: the events that stand alone, by their sessions

def openhands(path, document):
    folder, name = os.path.split(os.path.abspath(path))
    if name == "base_state.json":
        return
    if isinstance(document, dict) and "history" not in document:
        own = os.path.basename(os.path.dirname(folder)) if os.path.basename(folder) == "events" else ""
        session = stem(path) + "-" + digits(path, "")
        if own:
            session = own if len(own) >= 12 else plain(own) + "-" + digits(folder, own)
        events = conversations.setdefault(session, [])
        events.append(document)
        yield session, count_events(sorted(events, key=lambda e: e["timestamp"]), {}, "")
        return
    history = document if isinstance(document, list) else document["history"]
    own, metrics, problem = "", {}, ""
    if isinstance(document, dict):
        own, metrics = document.get("instance_id") or "", document.get("metrics") or {}
        problem = heading((document.get("instance") or {}).get("problem_statement") or "")
    events = [e for entry in history for e in (entry if isinstance(entry, list) else [entry])]
    yield (plain(own) or stem(path)) + "-" + digits(path, own), count_events(events, metrics, problem)

def count_events(events, metrics, problem):
    c, responses, called, used, cost, items, asked = zero(), set(), set(), {}, 0, [], []
    for e in events:
        if e.get("kind"):
            count_kind(c, e, responses)
            items += kind_item(e)
            if items and items[-1][0] == "ask":
                asked.append(first_text(e["llm_message"]["content"]))
            if e["kind"] == "ConversationStateUpdateEvent" and "usage_to_metrics" in e["value"] and not metrics:
                used = {n: m["accumulated_token_usage"] for n, m in e["value"]["usage_to_metrics"].items()}
                cost = nano(sum(m["accumulated_cost"] for m in e["value"]["usage_to_metrics"].values()))
            continue
        action, call = e.get("action"), e.get("tool_call_metadata") or {}
        at, cause = moment(e.get("timestamp")), ("event", e.get("cause"))
        if action == "message" and e["source"] == "user":
            items.append(("ask", at, None, ()))
            asked.append(first_text(e["args"]["content"]))
        elif action == "system" or e.get("observation") == "error" and not call:
            items.append(("other", at, None, ())) # a call that the model must write anew has no result
        c["user"] += action == "message" and e["source"] == "user"
        c["said"] += action == "message" and e["source"] == "user" and letters(e["args"]["content"])
        if not metrics:
            cost = max(cost, nano((e.get("llm_metrics") or {}).get("accumulated_cost")))
        if action and call:
            response = call["model_response"]
            if response["id"] not in responses:
                c["answered"] += letters(response["choices"][0]["message"].get("content"))
            responses.add(response["id"])
            if not metrics:
                used[response["id"]] = response.get("usage") or {}
            called |= {call["tool_call_id"], ("event", e["id"])}
            items.append(("answer", at, response["id"], [call["tool_call_id"]]))
            c["calls"] += 1
        elif e.get("source") == "agent" and action not in (None, "null", "system", "recall", "change_agent_state", "condensation", "condensation_request"):
            c["answered"] += len(e["args"].get("content" if action == "message" else "thought") or "")
            responses.add(("event", e["id"])) # older versions tell no calls: an action is one
            items.append(("answer", at, ("event", e["id"]), [("event", e["id"])] * (action != "message")))
            if action != "message":
                called.add(("event", e["id"]))
                c["calls"] += 1
        if e.get("observation") and (call.get("tool_call_id") in called or cause in called):
            c["results"] += 1
            items.append(("result", at, None, [call.get("tool_call_id"), cause]))
    c["assistant"] = len(responses)
    for usage in used.values():
        add(c, usage)
    add(c, metrics.get("accumulated_token_usage") or {}, nano(metrics.get("accumulated_cost")) + cost)
    follow(c, items)
    c["title"] = problem or next((a for a in asked if a), "")
    return c

def kind_item(e):
    """An event of the software agent SDK as an item of a path."""
    role, at, call = (e.get("llm_message") or {}).get("role"), moment(e.get("timestamp")), e.get("tool_call_id")
    if e["kind"] == "ActionEvent" or role == "assistant":
        return [("answer", at, e["llm_response_id"], [call] if call else [])]
    if e["kind"] in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
        return [("result", at, None, [call])]
    if role == "user":
        return [("ask" if e.get("source") == "user" and not e.get("sender") else "context", at, None, ())]
    return [("other", at, None, ())] if role or e["kind"] == "SystemPromptEvent" else []

def count_kind(c, e, responses):
    """An event of the software agent SDK."""
    role = (e.get("llm_message") or {}).get("role")
    c["user"] += role == "user"
    c["said"] += role == "user" and letters(e["llm_message"]["content"]) + letters(e.get("extended_content"))
    if role == "assistant" or e["kind"] == "ActionEvent":
        c["answered"] += letters(e.get("thought") if e["kind"] == "ActionEvent" else e["llm_message"]["content"])
    c["calls"] += e["kind"] == "ActionEvent"
    c["results"] += e["kind"] in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")
    if e["kind"] == "ActionEvent" or role == "assistant":
        responses.add(e["llm_response_id"])

trees = {} # of oasst: the messages of each, in the order in which they came

def oasst(path, document):
    tree, todo = document.get("message_tree_id"), [document.get("prompt") or document]
    session = tree or todo[0]["message_id"]
    known = trees.setdefault(session, {})
    single = "replies" not in todo[0]
    while todo:
        m = todo.pop(0)
        known.setdefault(m["message_id"], m)
        todo += [{**r, "parent_id": m["message_id"]} for r in m.get("replies") or []]
        last = m["message_id"]
    if not single: # the best is the one of the lowest rank, else the last
        last = None
        while True:
            replies = [m for m in known.values() if m.get("parent_id") == last]
            if not replies:
                break
            order = sorted(enumerate(replies), key=lambda r: (bool(r[1].get("deleted")), r[1].get("rank") is None, r[1].get("rank") or 0, -r[0]))
            last = order[0][1]["message_id"]
    c, items = zero(), []
    while last:
        answers = known[last]["role"] == "assistant"
        items.insert(0, ("answer" if answers else "ask", moment(known[last].get("created_date")), last, ()))
        c["title"] = c["title"] if answers else heading(known[last]["text"]) or c["title"]
        c["assistant" if answers else "user"] += 1
        c["answered" if answers else "said"] += len(known[last]["text"])
        last = known[last].get("parent_id")
    follow(c, items)
    yield session, c

def inspect(path, document):
    task = document["eval"]
    for sample in document.get("samples") or []:
        c, items = zero(), []
        if not sample.get("messages"):
            continue # nothing was said
        times = inspect_times(sample)
        for m, at in zip(sample["messages"], times):
            kind = {"user": "ask", "assistant": "answer", "tool": "result"}.get(m["role"], "other")
            ids = [call["id"] for call in m.get("tool_calls") or []] if kind == "answer" else [m.get("tool_call_id")]
            items.append((kind, at, len(items), ids))
            c["title"] = c["title"] or (first_text(m["content"]) if kind == "ask" else "")
            c["user"] += m["role"] == "user"
            c["assistant"] += m["role"] == "assistant"
            c["said"] += m["role"] == "user" and letters(m["content"])
            c["answered"] += m["role"] == "assistant" and letters(m["content"])
            c["calls"] += len(m.get("tool_calls") or [])
            c["results"] += m["role"] == "tool"
        follow(c, items)
        used = list((sample.get("model_usage") or {}).values()) or [(sample.get("output") or {}).get("usage") or {}]
        for usage in used:
            c["input"] += usage.get("input_tokens", 0)
            c["output"] += usage.get("output_tokens", 0)
            c["cache_read"] += usage.get("input_tokens_cache_read") or 0
            c["cache_write"] += usage.get("input_tokens_cache_write") or 0
        name = [task.get("run_id", ""), task.get("task_id", ""), task["task"], str(sample["id"]), str(sample["epoch"])]
        session = plain("-".join(name[2:])) + "-" + hashlib.sha256("\0".join(name).encode()).hexdigest()[:8]
        yield sample.get("uuid") or session, c

def inspect_times(sample):
    """The times of the messages: answers and results have the ends of their events, other messages the start of the next answer."""
    events = sample.get("events") or (sample.get("transcript") or {}).get("events") or []
    answers, results, order, next = {}, {}, [], None
    for e in events:
        begun = moment(e.get("timestamp"))
        if e["event"] == "tool":
            results[e.get("id")] = moment(e.get("completed")) or begun
        elif e["event"] == "model" and (e.get("output") or {}).get("choices"):
            took = int(1e9 * (e["output"].get("time") or 0))
            order.append((begun, moment(e.get("completed")) or begun + took))
            answers[e["output"]["choices"][0]["message"].get("id")] = order[-1]
    times, said = [], [m for m in sample["messages"] if m["role"] == "assistant"]
    if len(said) == len(order): # older messages have no ids
        answers.update((id(m), order[i]) for i, m in enumerate(said) if not m.get("id"))
    for m in reversed(sample["messages"]):
        if m["role"] == "assistant":
            next, at = answers.get(m.get("id") or id(m), (None, None))
        else:
            at = results.get(m.get("tool_call_id")) if m["role"] == "tool" else next
        times.append(at)
    return times[::-1]

def opencode(path, document):
    c, items = zero(), []
    for number, m in enumerate(document["messages"]):
        if m["info"]["id"] == (document["info"].get("revert") or {}).get("messageID"):
            break # the session was rewound to before it
        items += list(opencode_items(m, number)) # ids can be masked
        c["user"] += m["info"]["role"] == "user"
        c["said" if m["info"]["role"] == "user" else "answered"] += letters(m["parts"])
        if m["info"]["role"] != "assistant":
            continue
        c["assistant"] += 1
        tools = [p["state"]["status"] for p in m["parts"] if p["type"] == "tool"]
        c["calls"] += len(tools)
        c["results"] += sum(status in ("completed", "error") for status in tools)
        if m["info"]["time"]["created"] < document["info"]["time"]["created"]:
            continue # a copy, which costs in the session that it is of
        for step in [p for p in m["parts"] if p["type"] == "step-finish"] or [m["info"]]:
            c["input"] += step["tokens"]["input"]
            c["output"] += step["tokens"]["output"] + step["tokens"]["reasoning"]
            c["cache_read"] += step["tokens"]["cache"]["read"]
            c["cache_write"] += step["tokens"]["cache"]["write"]
            c["cost"] += nano(step["cost"])
    follow(c, items)
    c["title"] = document["info"].get("title") or ""
    yield document["info"]["id"], c

def opencode_items(m, key):
    """A message with its parts as items of a path. Text that is synthetic in whole is a program's."""
    at = m["info"]["time"]["created"] * 10**6
    if m["info"]["role"] == "user":
        said = [p for p in m["parts"] if p["type"] in ("text", "file")]
        yield "context" if said and all(p.get("synthetic") for p in said) else "ask", at, None, ()
        return
    yield "answer", None, key, ()
    for p in m["parts"]:
        time = p.get("time") or (p.get("state") or {}).get("time") or {}
        begun, ended = max(at, (time.get("start") or 0) * 10**6), max(at, (time.get("start") or 0) * 10**6, (time.get("end") or 0) * 10**6)
        if p["type"] in ("text", "reasoning", "file"):
            at = ended
            yield "answer", at, key, ()
        elif p["type"] == "tool":
            yield "answer", begun, key, [p["callID"]]
            at = begun # the model goes on while the tool runs
            if p["state"]["status"] in ("completed", "error"):
                yield "result", ended, None, [p["callID"]]

def item(c, items, m, before):
    """Counts a message of Chat Completions or Messages, or an item of Responses, and says whose it is."""
    role, kind, content = m.get("role"), m.get("type"), m.get("content")
    kinds = [b.get("type") for b in content] if isinstance(content, list) else []
    results = kinds.count("tool_result") + (role == "tool") + (kind or "").endswith("_call_output")
    calls = kinds.count("tool_use") + len(m.get("tool_calls") or []) + (kind == "function_call")
    c["calls"] += calls
    c["results"] += results
    ids = [b.get("tool_use_id") for b in content if b.get("type") == "tool_result"] if results and kinds else [m.get("tool_call_id") or m.get("call_id")]
    made = [b.get("id") for b in content if b.get("type") == "tool_use"] if kinds else []
    made += [call.get("id") or call.get("call_id") for call in m.get("tool_calls") or []] + [m.get("call_id")] * (kind == "function_call")
    answering = role == "assistant" or calls > 0 or kind == "reasoning"
    items.append(("answer" if answering else "result" if results else "ask" if role == "user" else "other", None, len(items), made if answering else ids))
    if role == "user" and not results:
        c["title"] = c["title"] or first_text(content)
    c["user"] += role == "user" and not results
    texts = letters(content, ("text", "input_text", "output_text"))
    c["said"] += role == "user" and not results and texts
    c["answered"] += role == "assistant" and texts
    of_responses = kind is not None # its items are pieces of one answer
    c["assistant"] += answering and not (of_responses and before == "assistant")
    spend(c, m.get("usage") or {})
    return "assistant" if answering else "other"

numbers = {} # of messages: how many conversations a file had so far

def turn(t):
    """The message that a turn of a conversation is."""
    call = json.loads(t["value"]) if t["from"] == "function_call" else None
    role = {"human": "user", "gpt": "assistant", "function_call": "assistant", "observation": "tool"}.get(t["from"], t["from"])
    return {"role": role, "content": None if call else t["value"], **({"tool_calls": [call]} if call else {})}

def messages(path, document):
    lists = document if isinstance(document, list) and document and not isinstance(document[0], dict) or \
        isinstance(document, list) and "role" not in document[0] and "type" not in document[0] else [document]
    for talk in lists:
        numbers[path] = number = numbers.get(path, 0) + 1
        talk = talk if isinstance(talk, dict) else {"messages": talk}
        response = talk.get("response") or talk
        talk = {**talk, **talk.get("request", {})}
        told = talk.get("messages")
        if told is None:
            told = talk.get("input")
            told = [{"role": "user", "content": told}] if isinstance(told, str) else told or []
        told = told + [turn(t) for t in talk.get("conversations") or []]
        told = told + (response.get("output") or []) + [choice["message"] for choice in (response.get("choices") or [])[:1]]
        c, items, before = {**zero(), "title": talk.get("title") or ""}, [], ""
        for m in told:
            before = item(c, items, m, before)
        follow(c, items)
        if response.get("output") or response.get("choices"):
            spend(c, response.get("usage") or {})
        own = talk.get("id") or ""
        name = plain(own) or str(number)
        yield own if len(own) >= 12 else stem(path) + "-" + name + "-" + digits(path, name + "\0" + own), c

def whole(paths):
    """The paths, and all events of conversations of openhands that one file is named of."""
    folders = {os.path.dirname(p) for p in paths}
    events = [os.path.join(f, "events") if os.path.exists(os.path.join(f, "base_state.json")) else f for f in folders]
    return paths | {p for f in events if os.path.basename(f) == "events" for p in files([f])}

count = globals()[sys.argv[1].replace("-", "_")]
sessions = {}
for path in sorted(whole(set(files(sys.argv[2:])))):
    if os.path.basename(path) != "LICENSE":
        sessions.update(s for value in values(path) for s in count(path, value))
show(sessions)
