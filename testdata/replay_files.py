#!/usr/bin/env python3
"""Replays the changes that `logtool files` lists into a folder, and compares the folder with what reads show.

Usage: testdata/replay_files.py [--sessions N] FILE_OR_FOLDER...

It imports the transcripts and takes the N sessions (10) with the most changes and reads, at most
three of a program. Of each file it writes the first text that the log has into a folder, and then
applies each diff of `files --diff` with patch(1). A read must show the lines that the folder has,
and after each change the folder must have the text of `files --print --at`. A file that differs at
a read must have a gap there in the table of `files`. What reads show is parsed here, from the
texts of the results. Any other difference is printed, and the exit code is 1.
"""
import json, os, re, subprocess, sys, tempfile
from collections import Counter, defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
NUMBERED = re.compile(r"^\s*(\d+)(?:→|\t|\| |: ?)(.*)$")

def numbered(text):
    """The number of the first line and the lines of a text that numbers them."""
    first, lines = None, []
    for line in text.split("\n"):
        m = NUMBERED.match(line)
        if not m or lines and int(m[1]) != first + len(lines):
            if lines:
                break
            continue
        first = first or int(m[1])
        lines.append(m[2])
    return first, lines

def shown(tool, args, text):
    """What a call shows of a file: its path, the number of the first line and the lines; None if it is no read."""
    path = args.get("file_path") or args.get("path") or args.get("filePath")
    command = args.get("cmd") or args.get("command") or ""
    if isinstance(command, list):
        command = command[-1] if command[:1] in (["bash"], ["/bin/bash"], ["zsh"], ["/bin/zsh"]) else " ".join(command)
    if tool in ("exec_command", "shell", "shell_command", "bash", "Bash"):
        m = re.fullmatch(r"\s*(?:cat|sed -n ['\"](\d+),\d+p['\"]) ([\w./@-]+)\s*", command)
        if not m or "truncated" in text or "Process exited with code" in text and "code 0" not in text:
            return None
        if "Output:\n" in text[:400]:
            text = text.split("Output:\n", 1)[1]
        return m[2], int(m[1] or 1), text.rstrip("\n").split("\n")
    if tool == "Read" or tool == "read" and re.match(r"\s*0*1?\d*(→|\t)", text):
        first, lines = numbered(text)
    elif tool in ("read", "read_file"):
        first, lines = int(args.get("offset") or 1), re.sub(r"\n\n\[[^\n]*\]\s*$", "", text).rstrip("\n").split("\n")
    elif tool in ("str_replace_editor", "file_editor") and args.get("command") in ("view", None):
        first, lines = numbered(text)
    elif tool in ("open", "goto", "scroll_down", "scroll_up"):
        m = re.search(r"^\[File: (.*?) \(\d+ lines total\)\]$", text, re.M)
        path, (first, lines) = m and m[1], numbered(text[m.end():] if m else "")
    else:
        return None
    return (path, first, lines) if path and first and any(lines) else None

def run(*args):
    done = subprocess.run([logtool, *args, "--store", store], capture_output=True)
    return done.returncode, done.stdout.decode(errors="replace")

def calls_of(session):
    """The calls of a session in the order of their results: (seq, seq of the result, tool, arguments, text, failed)."""
    called, all = {}, []
    for line in run("tail", session, "-n", "1000000", "--raw")[1].splitlines():
        e = json.loads(line)
        for p in (e.get("data") or {}).get("parts") or []:
            if p.get("type") == "tool_call":
                called[p["call_id"]] = e["seq"], p.get("name"), p.get("arguments")
            elif p.get("type") == "tool_result" and p["call_id"] in called:
                seq, tool, args = called[p["call_id"]]
                text = "".join(c.get("text") or "" for c in p.get("content") or [])
                all.append((seq, e["seq"], tool, args if isinstance(args, dict) else {}, text, p.get("is_error")))
    return all

def same(ours, lines):
    """Whether the lines are equal for a reader: results cut spaces at the end and hold no carriage returns."""
    return [l.rstrip("\r") for l in ours] == [l.rstrip("\r") for l in lines]

def replay(session, cwd, folder, counts):
    table = [json.loads(l) for l in run("files", session, "--json")[1].splitlines()]
    gaps = {f["path"]: {g["seq"] for g in f.get("gaps") or []} for f in table if "path" in f}
    reads, changes = defaultdict(list), defaultdict(list)
    for seq, result, tool, args, text, failed in calls_of(session):
        found = None if failed else shown(tool, args, text)
        if found:
            whole = os.path.normpath(os.path.join(args.get("workdir") or cwd, found[0]))
            named = [p for p in gaps if p == whole] or [p for p in gaps if p.endswith("/" + found[0])]
            if len(named) == 1:
                reads[named[0]].append((result, seq, found))
    for line in run("files", session, "--diff", "--json")[1].splitlines():
        c = json.loads(line)
        if c.get("path") and c.get("result"):
            changes[c["path"]].append((c["result"], c["seq"], c))
    for path in gaps:
        at = os.path.join(folder, "file")
        open(at, "w").close()
        known = False
        for result, seq, what in sorted(reads[path] + changes[path], key=lambda x: x[:2]):
            has, text = run("files", session, "--file", path, "--print", "--at", str(result))
            where = "%s #%d %s" % (session, seq, path)
            if isinstance(what, tuple): # a read
                _, first, lines = what
                ours = open(at, newline="").read().split("\n")[first - 1:][:len(lines)] if known else None
                if known and same(ours, lines):
                    counts["reads equal to the replay"] += 1
                elif known and seq in gaps[path]:
                    counts["reads after a gap"] += 1
                elif known:
                    counts["DIFFERENT reads"] += 1
                    i = next((i for i, (a, b) in enumerate(zip(ours, lines)) if a != b), min(len(ours), len(lines)))
                    print("%s: a read shows another line %d: %r, the replay has %r" % (where, first + i, lines[i:i + 1], ours[i:i + 1]))
                else:
                    counts["reads that give the first text" if has == 0 else "reads of a part of an unknown text"] += 1
                if has == 0 and not same(text.split("\n")[first - 1:][:len(lines)], lines):
                    counts["DIFFERENT texts after a read"] += 1
                    print("%s: the text after the read lacks its lines" % where)
            elif what.get("before") == what.get("after") == "known" and known and seq not in gaps[path]:
                done = subprocess.run(["patch", "-s", "--no-backup-if-mismatch", at], input=what.get("diff", "").encode(), capture_output=True) if what.get("diff") else None
                if done and done.returncode or has == 0 and open(at, newline="").read() != text:
                    counts["DIFFERENT changes"] += 1
                    print("%s: the diff does not lead to the text: %s" % (where, done and done.stdout.decode()))
                else:
                    counts["changes replayed"] += 1
                if has != 0:
                    known = False
                continue
            else:
                counts["changes after a gap" if seq in gaps[path] else "changes that give the first text" if has == 0 else "changes of an unknown text"] += 1
            known = has == 0
            if known:
                with open(at, "w", newline="") as f:
                    f.write(text)
        counts["files"] += 1
    counts["gaps named"] += sum(len(g) for g in gaps.values())

def pick(n):
    """The sessions with the most reads and changes, at most three of a program."""
    sums, programs = [], Counter()
    for line in run("ls", "--json", "--limit", "100000")[1].splitlines():
        s = json.loads(line)
        if "session" not in s: # the sum
            continue
        rows = [json.loads(l) for l in run("files", s["session"], "--json")[1].splitlines()]
        score = [sum(min(r.get("reads") or 0, 9) * (r.get("changes") or 0) for r in rows if "path" in r), len(rows)]
        sums.append((score, s["session"], s.get("source") or "", s.get("cwd") or ""))
    for score, id, agent, cwd in sorted(sums, reverse=True):
        if score[0] and programs[agent] < 3 and sum(programs.values()) < n:
            programs[agent] += 1
            yield id, agent, cwd

args, n = sys.argv[1:], 10
if args[:1] == ["--sessions"]:
    n, args = int(args[1]), args[2:]
with tempfile.TemporaryDirectory() as tmp:
    logtool, store = os.path.join(tmp, "logtool"), os.path.join(tmp, "log")
    subprocess.run(["go", "build", "-o", logtool, "./cmd/logtool"], cwd=os.path.dirname(HERE), check=True)
    run("import", *args)
    total = Counter()
    for id, agent, cwd in pick(n):
        counts = Counter()
        replay(id, cwd, tmp, counts)
        total += counts
        print("%s %s: %s" % (agent, id, ", ".join("%s %d" % c for c in sorted(counts.items()))), flush=True)
    print("all: " + ", ".join("%s %d" % c for c in sorted(total.items())))
    sys.exit(any(name.startswith("DIFFERENT") for name in total) or not total)
