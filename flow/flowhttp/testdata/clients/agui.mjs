// Drives the client of AG-UI: node agui.mjs URL SESSION TEXT...
// Each text is an input. It approves each interrupt, runs again when a stream is cut, and
// prints its messages and state at the end.
import { HttpAgent } from '@ag-ui/client';

const [url, threadId, ...texts] = process.argv.slice(2);
const agent = new HttpAgent({ url: url + '/ag-ui', threadId });
let cuts = 0;

process.on('unhandledRejection', () => {}); // of a stream that was cut

// run runs the agent until the run has ended.
async function run(parameters) {
  for (;;) {
    let finished;
    try {
      await agent.runAgent(parameters, { onRunFinishedEvent: ({ event }) => { finished = event; } });
    } catch (e) {
      if (!/terminated|aborted|fetch failed|socket|network|incomplete|closed/i.test(String(e) + String(e.cause))) throw e;
    }
    if (finished) return finished;
    if (++cuts > 500) throw new Error('cut too often');
  }
}

for (const [i, text] of texts.entries()) {
  agent.addMessage({ id: `input-${i}`, role: 'user', content: text });
  let finished = await run({});
  while (finished.outcome?.type === 'interrupt') {
    finished = await run({ resume: finished.outcome.interrupts.map(x => ({ interruptId: x.id, status: 'resolved', payload: { approved: true } })) });
  }
}
console.log(JSON.stringify({ cuts, messages: agent.messages, state: agent.state }));
