# The program of docs/guide/api.md for Python 3.9 and later, with the standard library.

import http.client, json, os, secrets, time, urllib.error, urllib.request

URL, TOKEN = os.environ["LOGTOOL_URL"], os.environ["CONVLOG_SERVE_TOKEN"]

def request(path, body=None, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    headers |= {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"}
    return urllib.request.Request(URL + path, body and json.dumps(body).encode(), headers)

def call(path, body=None, **headers):
    with urllib.request.urlopen(request(path, body, **headers), timeout=60) as answer:
        return json.load(answer)

def tag(head):
    return f'"{head["seq"]}:{head["hash"]}"'

def message(text):
    number = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    ulid = "".join("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[number >> shift & 31] for shift in range(125, -1, -5))
    return {"id": ulid, "type": "message_added", "data": {"role": "user", "parts": [{"type": "text", "text": text}]}}

def append(session, head, *events):
    """Append at a head; None begins the session. Another head is an HTTPError with status 412."""
    expected = {"If_Match": tag(head)} if head else {"If_None_Match": "*"}
    return call(f"/sessions/{session}/events", {"events": events}, **expected)

def events(session, after=0):
    while after is not None:
        part = call(f"/sessions/{session}/events?after={after}")
        yield from part["events"]
        after = part.get("next")

def follow(session, after=0):
    """Yield each event after a seq once, also if the server ends and starts again."""
    while True:
        try:
            with urllib.request.urlopen(request(f"/sessions/{session}/live?after={after}"), timeout=60) as stream:
                frame = {}
                for line in stream:
                    field, _, value = line.decode().rstrip("\n").partition(": ")
                    if field:
                        frame[field] = value
                    elif "id" in frame:  # an empty line ends a frame
                        after = int(frame["id"])
                        yield json.loads(frame.pop("data"))
                        frame = {}
                    elif "data" in frame:
                        print(json.loads(frame["data"])["detail"])  # of a problem, which ends the stream
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
        except (OSError, http.client.HTTPException):
            pass  # the server has gone
        time.sleep(0.2)

first = append("order-42", None, message("Where is my parcel?"))
append("order-42", first, message("It has the number A1."))
try:
    append("order-42", first, message("Any news?"))
except urllib.error.HTTPError as error:
    if error.code != 412:
        raise
    actual = json.load(error)
    print("lost the race:", actual["detail"])
    for event in events("order-42", after=first["seq"]):
        print("new:", event["data"]["parts"][0]["text"])
    append("order-42", actual, message("Any news of A1?"))
fork = call("/sessions/order-42/fork", {"at": 1, "as": "order-42-again"})
print("forked", fork["session"], "at", fork["at"])
for event in follow("order-42"):
    print("followed", event["seq"], event["type"], flush=True)
