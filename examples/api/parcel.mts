// The program of docs/guide/api.md for Node 20 and later, without packages. Node 24 runs it as it is; for Node 20,
// compile it with tsc.

const url = process.env.LOGTOOL_URL!, token = process.env.CONVLOG_SERVE_TOKEN!;

interface Head { seq: number; hash: string }
interface LogEvent extends Head { id: string; session: string; type: string; data: any }
interface NewEvent { id: string; type: string; data: unknown }

class Problem extends Error {
  status: number;
  body: { detail: string; remedy: string } & Partial<Head>;
  constructor(status: number, body: Problem["body"]) {
    super(`${body.detail}: ${body.remedy}`);
    this.status = status;
    this.body = body;
  }
}

async function send(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const answer = await fetch(url + path, {
    method: body ? "POST" : "GET", body: body ? JSON.stringify(body) : undefined,
    headers: { ...headers, Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
  });
  if (!answer.ok) throw new Problem(answer.status, await answer.json());
  return answer;
}

const call = async (path: string, body?: unknown, headers = {}): Promise<any> => (await send(path, body, headers)).json();

function message(text: string): NewEvent {
  const random = crypto.getRandomValues(new Uint16Array(5)).reduce((n, part) => n << 16n | BigInt(part), 0n);
  const number = BigInt(Date.now()) << 80n | random;
  const ulid = Array.from({ length: 26 }, (_, i) => "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[Number(number >> BigInt(125 - 5 * i) & 31n)]).join("");
  return { id: ulid, type: "message_added", data: { role: "user", parts: [{ type: "text", text }] } };
}

/** Appends at a head; null begins the session. Another head is a Problem with status 412. */
function append(session: string, head: Head | null, ...events: NewEvent[]): Promise<Head> {
  const expected = head ? { "If-Match": `"${head.seq}:${head.hash}"` } : { "If-None-Match": "*" };
  return call(`/sessions/${session}/events`, { events }, expected);
}

async function* events(session: string, after: number | undefined = 0): AsyncGenerator<LogEvent> {
  while (after !== undefined) {
    const part: { events: LogEvent[]; next?: number } = await call(`/sessions/${session}/events?after=${after}`);
    yield* part.events;
    after = part.next;
  }
}

async function* lines(answer: Response): AsyncGenerator<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of answer.body! as unknown as AsyncIterable<Uint8Array>) {
    const parts = (text + decoder.decode(chunk, { stream: true })).split("\n");
    text = parts.pop()!;
    yield* parts;
  }
}

/** Yields each event after a seq once, also if the server ends and starts again. */
async function* follow(session: string, after = 0): AsyncGenerator<LogEvent> {
  for (;;) {
    try {
      let name = "";
      for await (const line of lines(await send(`/sessions/${session}/live?after=${after}`))) {
        if (line.startsWith("event: ")) name = line.slice(7);
        if (!line.startsWith("data: ")) continue;
        const value = JSON.parse(line.slice(6));
        if (name === "problem") {
          console.log(value.detail);
          continue;
        }
        after = value.seq;
        yield value;
      }
    } catch (error) {
      if (error instanceof Problem && error.status !== 503) throw error;
    }
    await new Promise((wake) => setTimeout(wake, 200)); // the server has gone
  }
}

const first = await append("order-42", null, message("Where is my parcel?"));
await append("order-42", first, message("It has the number A1."));
try {
  await append("order-42", first, message("Any news?"));
} catch (error) {
  if (!(error instanceof Problem) || error.status !== 412) throw error;
  console.log("lost the race:", error.body.detail);
  for await (const event of events("order-42", first.seq)) console.log("new:", event.data.parts[0].text);
  await append("order-42", error.body as Head, message("Any news of A1?"));
}
const fork = await call("/sessions/order-42/fork", { at: 1, as: "order-42-again" });
console.log("forked", fork.session, "at", fork.at);
for await (const event of follow("order-42")) console.log("followed", event.seq, event.type);
