#!/usr/bin/env python3
"""Resumes sessions of real programs in each other, and compares the requests with the history.

Each source makes a session with text, reasoning, calls, a failed call, an image, a compaction
and a sub-agent. logtool resume writes it for each target, and the target goes on with a call.
The first request of the target must have the blocks of the history, except for the losses that
resume lists. The same holds if a summary is in the place of the beginning (--compact-from). An
import of what the target added must make one tree, and count each answer once.
Each program also goes on in itself from before its turn 2.

Usage: testdata/resume_matrix.py [PROGRAM...]
PROGRAMS is a folder with the commands "serve" and "run PROGRAM ARGS...": serve starts a scripted
model server, which writes its requests to $REAL/requests, in the network of the process in
$REAL/ns.pid; run starts a program with the home $H
in the folder $WORK. Without PROGRAMS the script does nothing.
"""
import base64
import difflib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

ALL = ["claude", "codex", "gemini", "opencode", "pi"]
FIRST, COMPACT = "use-read: what is in hello.txt?", "compact"
PROMPTS = [COMPACT, "Hello again.", "Now use-bad please.", "Now use-image please.", "Now use-agent please.", "Thank you."]
LAST = "4" # a turn after the compaction
MORE = "Go on: use-read again."


class Programs:
    """The programs, with homes in a temporary folder."""

    def __init__(self, tools, tmp, logtool):
        self.tools, self.tmp, self.logtool = tools, tmp, logtool
        self.real = os.environ.get("REAL", os.path.expanduser("~/.real-programs"))
        self.work = os.path.join(tmp, "work")
        os.makedirs(self.work)
        self.env = dict(os.environ, REAL=self.real, WORK=self.work)
        subprocess.run([os.path.join(tools, "serve")], check=True, env=self.env)
        self.run("opencode", "--version") # makes its settings
        path = os.path.join(self.home("opencode"), ".config/opencode/opencode.json")
        with open(path) as f:
            settings = json.load(f)
        settings["provider"]["fake"]["models"]["claude-fake"]["modalities"] = {"input": ["text", "image"], "output": ["text"]}
        with open(path, "w") as f:
            json.dump(settings, f)

    def home(self, program):
        return os.path.join(self.tmp, "home", program)

    def run(self, program, *args, stdin=None):
        env = dict(self.env, H=self.home(program), T="120")
        done = subprocess.run([os.path.join(self.tools, "run"), program, *args], env=env, input=stdin, text=True, capture_output=True, timeout=150)
        return done.stdout

    def log(self, source, *args, home=None):
        env = dict(self.env, HOME=home or self.home(source))
        store = os.path.join(self.tmp, "log-" + source)
        done = subprocess.run([self.logtool, "--store", store, *args], env=env, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"logtool {' '.join(args)}: {done.stderr}")
        return done.stdout

    def rows(self, source, *args, home=None):
        return [json.loads(line) for line in self.log(source, *args, "--json", home=home).splitlines()]

    def requests(self):
        folder = os.path.join(self.real, "requests")
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]

    def say(self, program, prompt, session=None, newest=False):
        """Runs one prompt in a new session, in the newest one, or in a session."""
        if program == "claude":
            where = ["--resume", session] if session else ["--continue"] if newest else []
            return self.run(program, "-p", prompt, *where, "--allowedTools", "Read,Bash,Agent,Task")
        if program == "codex":
            where = ["resume", session] if session else ["resume", "--last"] if newest else []
            where += ["-i", os.path.join(self.work, "dot.png")] if "use-image" in prompt else [] # it has no tool for one
            return self.run(program, "exec", "--skip-git-repo-check", *where, prompt)
        if program == "gemini":
            where = ["--resume", session or "latest"] if session or newest else []
            return self.run(program, *where, "-p", prompt)
        if program == "opencode":
            where = ["-s", session, "-m", "fake/claude-fake", "--agent", "build"] if session else ["-c"] if newest else []
            return self.run(program, "run", *where, prompt)
        where = ["--session", session] if session else ["-c"] if newest else []
        return self.run(program, "-p", prompt, *where, "--provider", "fake", "--model", "claude-fake")

    def compact(self, program):
        if program == "claude":
            self.run(program, "-p", "/compact", "--continue")
        elif program == "codex":
            self.run(program, "exec", "--skip-git-repo-check", "-c", "model_auto_compact_token_limit=50", "resume", "--last", "Hello once more.")
        elif program == "gemini":
            self.change("gemini", ".gemini/settings.json", lambda s: s.update(model={"compressionThreshold": 0.00001}), "Hello once more.")
        elif program == "opencode":
            self.summarize()
        else:
            path = os.path.join(self.home("pi"), ".pi/agent/settings.json")
            with open(path, "w") as f:
                json.dump({"compaction": {"enabled": True, "keepRecentTokens": 1}}, f)
            command = subprocess.Popen(
                [os.path.join(self.tools, "run"), "pi", "--mode", "rpc", "-c"], env=dict(self.env, H=self.home("pi"), T="20"),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            command.stdin.write('{"type":"compact"}\n')
            command.stdin.flush()
            for line in command.stdout:
                if '"command":"compact"' in line:
                    break
            command.stdin.close()
            command.wait()

    def summarize(self):
        """Asks a server of OpenCode to compact the newest session."""
        session = re.search(r"ses_\w+", self.run("opencode", "session", "list")).group()
        server = subprocess.Popen(
            [os.path.join(self.tools, "run"), "opencode", "serve", "--port", "4097"], env=dict(self.env, H=self.home("opencode"), T="90"),
            stdout=subprocess.PIPE, text=True)
        for line in server.stdout:
            if "listening" in line:
                break
        with open(os.path.join(self.real, "ns.pid")) as f:
            network = f"--net=/proc/{f.read().strip()}/ns/net"
        url = f"http://127.0.0.1:4097/session/{session}/summarize?directory={self.work}"
        body = '{"providerID":"fake","modelID":"claude-fake"}'
        subprocess.run(["nsenter", network, "curl", "-s", "-m", "60", "-H", "content-type: application/json", "-d", body, url], check=True, capture_output=True)
        server.terminate()
        server.wait()

    def change(self, program, path, edit, prompt):
        """Says a prompt with other settings."""
        path = os.path.join(self.home(program), path)
        with open(path) as f:
            text = f.read()
        settings = json.loads(text)
        edit(settings)
        with open(path, "w") as f:
            json.dump(settings, f)
        try:
            self.say(program, prompt, newest=True)
        finally:
            with open(path, "w") as f:
                f.write(text)

    def make(self, source):
        """Makes the session of a source, imports it, and returns its id."""
        for prompt in [FIRST, "Hello.", *PROMPTS]:
            if prompt == COMPACT:
                self.compact(source)
            else:
                self.say(source, prompt, newest=prompt != FIRST)
        self.log(source, "import", "--known")
        rows = [r for r in self.rows(source, "ls") if r["kind"] == "root"]
        return max(rows, key=lambda r: r["events"])["session"]


def sha(data):
    return "sha256:" + hashlib.sha256(base64.b64decode(data)).hexdigest()


def squeeze(text):
    return re.sub(r"[\s*]+", " ", text).strip()


def block(role, kind, **more):
    return {"role": role, "kind": kind, **more}


def said(role, text):
    return [block(role, "text", text=squeeze(text))] if squeeze(text) else []


def call(ident, name, args):
    return block("assistant", "call", id=ident, name=name, args=json.dumps(args, sort_keys=True))


def result(ident, text, images, failed):
    return block("user", "result", id=ident, text=squeeze(text), images=images, failed=failed)


def history(rows, lost):
    """The blocks of a history, without what resume lists as lost."""
    blocks = []
    for row in rows:
        m, gone = row["message"], {kind for kind, seqs in lost.items() if set(seqs) & {row.get("seq", 0), *row.get("seqs", [])}}
        if row.get("context") or gone & {"context", "system"} and row.get("seq"):
            continue
        role = "assistant" if m["role"] == "assistant" else "user"
        for p in m.get("parts", []):
            if p["type"] == "text":
                blocks += said(role, p["text"])
            elif p["type"] == "reasoning" and "reasoning" not in gone and p.get("text"):
                blocks.append(block(role, "reasoning", text=squeeze(p["text"])))
            elif p["type"] == "image":
                blocks.append(block(role, "image", digest=p["blob"]["blob"]))
            elif p["type"] == "tool_call":
                blocks.append(call(p["call_id"], p["name"], p.get("arguments")))
            elif p["type"] == "tool_result":
                texts = [c["text"] for c in p.get("content", []) if c["type"] == "text"]
                images = [c["blob"]["blob"] for c in p.get("content", []) if c["type"] == "image"]
                blocks.append(result(p["call_id"], " ".join(texts), images, p.get("is_error", False) and "error_mark" not in gone))
    return blocks


def anthropic(body):
    for m in body["messages"]:
        content = m["content"] if isinstance(m["content"], list) else [{"type": "text", "text": m["content"]}]
        for b in content:
            if b["type"] == "text":
                yield from said(m["role"], b["text"])
            elif b["type"] == "thinking":
                yield block(m["role"], "reasoning", text=squeeze(b["thinking"]))
            elif b["type"] == "image":
                yield block(m["role"], "image", digest=sha(b["source"]["data"]))
            elif b["type"] == "tool_use":
                yield call(b["id"], b["name"], b["input"])
            elif b["type"] == "tool_result":
                inner = b.get("content", "")
                inner = inner if isinstance(inner, list) else [{"type": "text", "text": inner}]
                texts = [c["text"] for c in inner if c["type"] == "text"]
                images = [sha(c["source"]["data"]) for c in inner if c["type"] == "image"]
                yield result(b["tool_use_id"], " ".join(texts), images, b.get("is_error", False))


def responses(body):
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "message" and item["role"] in ("user", "assistant"):
            for c in item["content"]:
                if "image_url" in c:
                    yield block(item["role"], "image", digest=sha(c["image_url"].split(",", 1)[1]))
                else:
                    yield from said(item["role"], c["text"])
        elif kind == "reasoning":
            yield block("assistant", "reasoning", text=squeeze(" ".join(s["text"] for s in item["summary"])))
        elif kind == "function_call":
            yield call(item["call_id"], item["name"], json.loads(item["arguments"]))
        elif kind == "custom_tool_call":
            yield call(item["call_id"], item["name"], item["input"])
        elif kind.endswith("_call_output"):
            out = item["output"]
            out = out if isinstance(out, list) else [{"text": out}]
            images = [sha(c["image_url"].split(",", 1)[1]) for c in out if "image_url" in c]
            yield result(item["call_id"], " ".join(c.get("text", "") for c in out), images, False)


def google(body):
    last = None
    for c in body["contents"]:
        role = "assistant" if c["role"] == "model" else "user"
        for p in c["parts"]:
            if "functionCall" in p:
                yield call(p["functionCall"]["id"], p["functionCall"]["name"], p["functionCall"]["args"])
            elif "functionResponse" in p:
                r = p["functionResponse"]
                response = r["response"]
                last = result(r["id"], " ".join(map(str, response.values())), [], "error" in response)
                yield last
            elif "inlineData" in p:
                digest = sha(p["inlineData"]["data"])
                if last is not None and role == "user":
                    last["images"].append(digest)
                else:
                    yield block(role, "image", digest=digest)
            elif p.get("thought"):
                yield block(role, "reasoning", text=squeeze(p["text"]))
            else:
                last = None
                yield from said(role, p["text"])


# Texts that a target puts into a request by itself.
OWN = re.compile(r"<(system-reminder|environment_context|session_context|permissions|user_instructions|skills_instructions|collaboration_mode)|"
                 r"This is the Gemini CLI\.|# AGENTS\.md|\[SYSTEM")


def sent(path):
    """The blocks of a request; None if it is no request of the main conversation."""
    with open(path) as f:
        body = json.load(f).get("body")
    if not isinstance(body, dict) or not body.get("tools") or MORE not in json.dumps(body, ensure_ascii=False):
        return None
    read = anthropic if "messages" in body else responses if "input" in body else google
    return without_own([b for b in read(body) if b["role"] != "system"])


def without_own(blocks):
    return [b for b in blocks if not (b["kind"] == "text" and b["role"] != "assistant" and OWN.match(b["text"]))]


def without_ids(blocks):
    """Names calls by their order: a target may change ids that an API refuses."""
    names, out = {}, []
    for b in blocks:
        b = dict(b)
        if "id" in b:
            b["id"] = names.setdefault(b["id"], len(names))
        out.append(b)
    return out


def differences(target, want, got):
    want, got = without_ids(want), without_ids(got)
    for b in want:
        if target == "pi" and b["kind"] == "result" and b["images"] and not b["text"]:
            b["text"] = "(see attached image)" # pi adds it
    if target == "claude" and want and want[-1]["role"] == "user":
        want.append(block("assistant", "text", text="No response requested.")) # Claude Code adds it
    lines = lambda all: [json.dumps(b, ensure_ascii=False, sort_keys=True)[:300] for b in all]
    return [d for d in difflib.unified_diff(lines(want), lines(got), "history", "request", lineterm="", n=0) if not d.startswith(("---", "+++", "@@"))]


def cost(programs, source, session):
    """The number of answers of a session, and of its tree."""
    c = json.loads(programs.log(source, "cost", session, "--prices", "none", "--json").splitlines()[0])
    return c["own"].get("responses", 0), c["tree"]["total"].get("responses", 0)


def go_on(programs, source, session, target, *point):
    """Resumes a session in a target, goes on, imports, and returns (losses, differences)."""
    home = programs.home(target)
    os.makedirs(home, exist_ok=True)
    wrote = json.loads(programs.log(source, "resume", session, "--to", target, "--cwd", programs.work, *point, "--json", home=home))
    at = (wrote["session"],) if "compacted" in wrote else (session, "--at", str(wrote["at"]))
    want = without_own(history(programs.rows(source, "history", *at), wrote["losses"]))
    if wrote.get("import"):
        programs.run(target, *wrote["import"][1:])
    before = len(programs.requests())
    answer = programs.say(target, MORE, session=wrote["session"])
    found = [b for b in map(sent, programs.requests()[before:]) if b]
    if not found or "tool answered" not in answer:
        return wrote["losses"], [f"{target} did not go on: {answer[-300:]}"]
    end = max(i for i, b in enumerate(found[0]) if MORE in b.get("text", ""))
    got = found[0][:end]
    bad = differences(target, want, got)
    events = {r["session"]: r["events"] for r in programs.rows(source, "ls")}
    _, answers = cost(programs, source, session)
    for _ in range(2):
        programs.log(source, "import", "--known", home=home)
    after = {r["session"]: r for r in programs.rows(source, "ls")}
    fork = after[wrote["session"]]
    if fork["parent"] != session or fork["at"] != wrote["at"] or fork["events"] <= events[wrote["session"]]:
        bad.append(f"the fork: {fork}")
    own, total = cost(programs, source, wrote["session"])[0], cost(programs, source, session)[1]
    if own < 2 or total != answers + own:
        bad.append(f"{answers} answers before, {own} of the fork, {total} after")
    if after[session]["events"] != events[session]:
        bad.append("the session of the source has changed")
    return wrote["losses"], bad


def main():
    tools = os.environ.get("PROGRAMS")
    if not tools:
        print("resume_matrix: PROGRAMS names no folder with real programs: nothing to do")
        return 0
    names, start, failed = sys.argv[1:] or ALL, time.time(), 0
    with tempfile.TemporaryDirectory() as tmp:
        logtool = os.path.join(tmp, "logtool")
        subprocess.run(["go", "build", "-o", logtool, "./cmd/logtool"], check=True, cwd=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
        programs = Programs(tools, tmp, logtool)
        try:
            for source in names:
                session = programs.make(source)
                blocks = history(programs.rows(source, "history", session), {})
                kinds = sorted({k for b in blocks for k in [b["kind"], *(["failed"] if b.get("failed") else []), *(["image"] if b.get("images") else [])]})
                kinds += ["summary"] if any("SUMMARY" in b.get("text", "") for b in blocks) else []
                kinds += ["sub-agent"] if any(r["kind"] == "run" for r in programs.rows(source, "ls")) else []
                print(f"{source}: {', '.join(kinds)}", flush=True)
                cases = [(target, ()) for target in names] + [(source, ("--at-turn", "2", "--before")), (names[names.index(source) - 1], ("--compact-from", LAST))]
                for target, point in cases:
                    lost, bad = go_on(programs, source, session, target, *point)
                    losses = ", ".join(f"{len(seqs)} {kind}" for kind, seqs in sorted(lost.items())) or "nothing"
                    name = " ".join((target, *point))
                    print(f"  {name}: {'equal' if not bad else 'DIFFERS'}; lost: {losses}", flush=True)
                    for line in bad:
                        print("    " + line)
                    failed += bool(bad)
                programs.log(source, "verify")
        finally:
            subprocess.run([os.path.join(tools, "stop")], env=programs.env)
    print(f"{failed} differ; {time.time() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
