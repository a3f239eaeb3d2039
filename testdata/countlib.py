"""What the counts of transcripts share. None of it is the importers'."""
import json, os

NAMES = ("user", "assistant", "calls", "results", "input", "output", "cache_read", "cache_write", "cost")

def zero():
    return dict.fromkeys(NAMES, 0)

def files(paths, ending=""):
    """The files named, and those in folders that have the ending."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for folder, _, names in os.walk(path):
            yield from (os.path.join(folder, n) for n in sorted(names) if n.endswith(ending))

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
