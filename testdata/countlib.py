"""What the counts of transcripts share. None of it is the importers'."""
import datetime, json, os, re, sys
from collections import Counter

NAMES = ("user", "assistant", "calls", "results", "input", "output", "cache_read", "cache_write", "cost", "said", "answered",
         "context", "turns", "empty", "open", "called", "worked")

def zero():
    return {**dict.fromkeys(NAMES, 0), "title": "", "children": ""}

def moment(text):
    """The nanoseconds of a time of RFC 3339, also of one without a zone; None of any other value."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\d*(Z|[+-]\d\d:\d\d)?", text) if isinstance(text, str) else None
    if not found:
        return None
    whole = datetime.datetime.fromisoformat(found[1] + (found[3] or "Z").replace("Z", "+00:00"))
    return int(whole.timestamp()) * 10**9 + int((found[2] or "").ljust(9, "0"))

def heading(text):
    """The title that a request gives: its first line, and of a plan or an issue the heading."""
    line, _, rest = text.strip().partition("\n")
    line = " ".join(line.split())
    announced = ("implement the following plan:", "please implement this plan:", "<task>", "<pr_description>", "consider the following pr description:")
    if line.lower() in announced and rest.strip():
        return heading(rest.strip().lstrip("# "))
    return line if len(line) <= 80 else line[:79].rstrip(" ") + "…"

def states(children):
    """How many children are in each state, by the ids of the children."""
    return " ".join("%s %d" % (state, n) for state, n in sorted(Counter(children.values()).items()))

def follow(c, items):
    """Counts the turns and the model calls of a path.

    An item is (kind, time, key, ids): ask and context, messages of people and of programs
    in the user's name; answer, a piece of the answer key with the ids of its calls; result,
    with the ids of the calls; begin and end of a turn, where the source has them; asked,
    a request that is no message, of the open or the next turn; other, any other message;
    wait, which is no message; took, the milliseconds (key) that the program measured of the turn;
    beside, what a person did without the model; step, which is work and no message.
    A turn works from its first message to its last one, contexts left out.
    """
    late, called, had = {}, set(), set() # the times of results before their calls; the calls, and those with a result
    turns, turn, asked, asking, heard, answers, dated = [], None, False, False, None, {}, None
    for kind, at, key, ids in items:
        at = dated = dated if at is None else at # an item without a date has the time of the item before
        c["context"] += kind == "context"
        if kind == "begin":
            if not (turn and asking and not turn["told"]):
                turn = {"asked": asked}
                turns.append(turn)
                asked = False
            turn.update(told=True, answered=False, open=set(), ended=False)
            asking = False
        elif kind == "end" and turn and turn["told"]:
            turn["took"], turn["last"] = key or 0, max(at or 0, turn.get("last", 0))
            turn["ended"] = True
            turn, asking = None, False
        elif kind == "asked" and turn and turn["told"]:
            turn["asked"] = True
        elif kind == "asked":
            asked = True
        elif kind == "ask":
            if not asking and not (turn and turn["told"]):
                turn = {"asked": False, "told": False, "answered": False, "open": set(), "ended": False}
                turns.append(turn)
            turn["asked"], asking = True, True
        elif kind in ("answer", "result", "other", "beside"):
            asking = False
        if turn and at is not None and kind not in ("context", "wait", "took", "asked", "beside"):
            turn.setdefault("began", at)
            turn["last"] = max(at, turn.get("last", at))
        if turn and kind == "took":
            turn["took"] = turn.get("took", 0) + key
        if turn and kind == "answer":
            turn["answered"] = True
            turn["open"] |= set(ids) - had
        elif turn and kind == "result":
            turn["open"] -= set(ids)
        had |= set(ids) if kind == "result" else set()
        if kind == "answer":
            answers.setdefault(key, [heard if heard is not None else at, at])[1] = at
        if kind == "answer":
            called |= set(ids)
            arrived = [late.pop(id) for id in ids if id in late]
            heard = max([at] + arrived) if at is not None else at
        elif kind == "result" and not called & set(ids):
            late.update((id, at) for id in ids if at is not None)
        elif kind not in ("end", "wait", "asked", "took", "step"):
            heard = at
    for i, turn in enumerate(turns):
        c["turns"] += turn["asked"]
        c["empty"] += not turn["asked"]
        later = any(t["told"] for t in turns[i + 1:])
        c["worked"] += turn.get("took") or (turn["last"] - turn["began"]) // 10**6 if "began" in turn else 0
        c["open"] += not (turn["ended"] or turn["told"] and later) if turn["told"] else not turn["answered"] or bool(turn["open"])
    for begun, ended in answers.values():
        if begun is not None and ended is not None:
            c["called"] += max(0, ended - begun) // 10**6

def letters(content, kinds=("text",)):
    """How many characters the text of a message's content has: one text, or blocks of it."""
    if isinstance(content, str):
        return len(content)
    blocks = content if isinstance(content, list) else []
    texts = (b if isinstance(b, str) else b.get("text") or "" if b.get("type") in kinds else "" for b in blocks)
    return sum(map(len, texts))

def files(paths, ending=""):
    """The files named, and those in folders that have the ending."""
    for path in paths:
        found = [path]
        if os.path.isdir(path):
            found = [os.path.join(folder, n) for folder, _, names in os.walk(path) for n in sorted(names) if n.endswith(ending)]
        yield from found

def records(path):
    """The JSON objects of a file of lines, of which one may hold several."""
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

def show(sessions):
    """Prints a line of JSON for each session, by id."""
    for session, counts in sorted(sessions.items()):
        print(json.dumps({"session": session, **counts}, separators=(",", ":"), ensure_ascii=False))

def total(lines):
    """The sum of what show printed."""
    all = [json.loads(line) for line in lines]
    sums = {name: sum(c[name] for c in all) for name in NAMES}
    children = Counter()
    for c in all:
        words = c["children"].split()
        children.update(dict(zip(words[::2], map(int, words[1::2]))))
    sums.update(titles=sum(bool(c["title"]) for c in all), **children)
    return "%d sessions, %s" % (len(all), ", ".join("%s %d" % (name, n) for name, n in sums.items()))

if __name__ == "__main__":
    print(total(sys.stdin))
