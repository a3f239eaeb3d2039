// Drives the client of the AI SDK: node aisdk.mjs URL SESSION TEXT...
// Each text is an input. It approves each review, follows a cut stream again, and prints its
// messages at the end.
import { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';

class State {
  status = 'ready';
  error = undefined;
  messages = [];
  pushMessage = m => { this.messages = [...this.messages, m]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (i, m) => { this.messages = this.messages.map((x, n) => (n === i ? m : x)); };
  snapshot = x => structuredClone(x);
}

class Chat extends AbstractChat {
  constructor(o) { super({ ...o, state: new State() }); }
}

const [url, id, ...texts] = process.argv.slice(2);
let cuts = 0;
const chat = new Chat({
  id,
  transport: new DefaultChatTransport({ api: url + '/ai-sdk' }),
  onError: e => process.env.DEBUG && console.error(String(e), e.cause),
});

// follow follows the turn until it has ended or waits for a review.
async function follow(begin) {
  await begin();
  while (chat.status === 'error') {
    if (++cuts > 500) throw chat.error;
    await chat.resumeStream();
  }
}

for (const text of texts) {
  await follow(() => chat.sendMessage({ text }));
  for (;;) {
    const open = chat.messages.at(-1).parts.filter(p => p.state === 'approval-requested');
    if (open.length === 0) break;
    for (const p of open) await chat.addToolApprovalResponse({ id: p.approval.id, approved: true });
    if (!lastAssistantMessageIsCompleteWithApprovalResponses({ messages: chat.messages })) throw new Error('the message is not complete');
    await follow(() => chat.sendMessage());
  }
}
console.log(JSON.stringify({ cuts, messages: chat.messages }));
