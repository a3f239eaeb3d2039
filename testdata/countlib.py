"""What the counts of transcripts share. None of it is the importers'."""
import json, os, sys

NAMES = ("user", "assistant", "calls", "results", "input", "output", "cache_read", "cache_write", "cost", "said", "answered")

def zero():
    return dict.fromkeys(NAMES, 0)

def letters(content, kinds=("text",)):
    """How many characters the text of a message's content has: one text, or blocks of it."""
    if isinstance(content, str):
        return len(content)
    blocks = content if isinstance(content, list) else []
    texts = (b if isinstance(b, str) else b.get("text") or "" if b.get("type") in kinds else "" for b in blocks)
    return sum(map(len, texts))

def files(paths, ending=""):
    """The files named, and those in folders that have the ending, but for LEFT_OUT."""
    out = os.environ.get("LEFT_OUT", "").split("\n")
    for path in paths:
        found = [path]
        if os.path.isdir(path):
            found = [os.path.join(folder, n) for folder, _, names in os.walk(path) for n in sorted(names) if n.endswith(ending)]
        yield from (f for f in found if f not in out)

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
        print(json.dumps({"session": session, **counts}, separators=(",", ":")))

def total(lines):
    """The sum of what show printed."""
    all = [json.loads(line) for line in lines]
    sums = {name: sum(c[name] for c in all) for name in NAMES}
    return "%d sessions, %s" % (len(all), ", ".join("%s %d" % (name, n) for name, n in sums.items()))

if __name__ == "__main__":
    print(total(sys.stdin))
