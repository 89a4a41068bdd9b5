// The official browser client, unmodified, against the front of a host: prompts, decisions, questions, interrupts, and a
// connection that is cut after each event. Each scenario is reported as a line of JSON.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import http from 'node:http';
import readline from 'node:readline';
import { query, getCcrEvent, getSseLastSequenceNum } from '@anthropic-ai/claude-agent-sdk/browser';

const host = spawn(process.env.SCRIPTED_HOST, { stdio: ['pipe', 'pipe', 'inherit'] });
const ended = new Promise((resolve) => host.once('exit', resolve));
const [line] = await new Promise((resolve) => {
  readline.createInterface({ input: host.stdout }).once('line', (line) => resolve([line]));
});
const { url, token, reader } = JSON.parse(line);
const auth = { Authorization: `Bearer ${token}` };

/** A proxy that cuts each stream after `events` durable events, until it has cut `cuts` of them. */
async function cutting(events, cuts) {
  const proxy = { cursors: [] };
  const server = http.createServer((request, response) => {
    const streams = request.url.endsWith('/stream');
    if (streams) proxy.cursors.push(Number(request.headers['last-event-id'] ?? 0));
    const headers = { ...request.headers, host: new URL(url).host };
    const onward = http.request(url + request.url, { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      if (!streams || cuts === 0) return answer.pipe(response);
      let seen = 0;
      let text = '';
      answer.on('data', (data) => {
        text += data;
        for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
          if (seen >= events) return;
          response.write(text.slice(0, end + 2));
          if (text.startsWith('id: ') && ++seen === events) {
            cuts -= 1;
            // What was written goes out before the end.
            response.end(() => response.destroy());
            onward.destroy();
            return;
          }
        }
      });
      answer.on('end', () => response.end());
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxy.url = `http://127.0.0.1:${server.address().port}`;
  proxy.close = () => (server.closeAllConnections(), server.close());
  return proxy;
}

/** A conversation of one prompt up to its result: messages, their sequence numbers, and the query. */
async function converse(session, text, { base = url, options = {}, onMessage } = {}) {
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  async function* prompts() {
    yield { type: 'user', message: { role: 'user', content: [{ type: 'text', text }] }, parent_tool_use_id: null, session_id: '' };
    await finished;
  }
  const events = `${base}/v1/sessions/${session}/events`;
  const deliveries = [];
  const q = query({
    prompt: prompts(),
    ...options,
    sse: { streamUrl: `${events}/stream`, sendUrl: events, sessionId: session, headers: auth,
      onDeliveryUpdate: (update) => deliveries.push(update.status) },
  });
  const messages = [];
  const seqs = [];
  for await (const message of q) {
    messages.push(message);
    const event = getCcrEvent(q, message);
    if (event) seqs.push(event.sequence_num);
    await onMessage?.(q, message);
    if (message.type === 'result') break;
  }
  finish();
  return { messages, seqs, deliveries, cursor: getSseLastSequenceNum(q), result: messages.at(-1).result };
}

async function log(session) {
  const answer = await fetch(`${url}/v1/sessions/${session}/events`, { headers: auth });
  return (await answer.json()).events;
}

const allow = async (_, input) => ({ behavior: 'allow', updatedInput: input });

const scenarios = {
  async prompt() {
    const { result, deliveries } = await converse('session-prompt', 'hello');
    assert.equal(result, 'echo: hello');
    assert.ok(deliveries.includes('DELIVERY_STATUS_PROCESSING'), deliveries.join());
  },
  async 'permission-allow'() {
    const asked = [];
    const canUseTool = async (tool, input) => (asked.push([tool, input]), allow(tool, input));
    const { result } = await converse('session-allow', 'permission', { options: { canUseTool } });
    assert.equal(result, 'permission: allow');
    assert.deepEqual(asked, [['Bash', { command: 'ls' }]]);
  },
  async 'permission-deny'() {
    const canUseTool = async () => ({ behavior: 'deny', message: 'no' });
    const { result } = await converse('session-deny', 'permission', { options: { canUseTool } });
    assert.equal(result, 'permission: deny');
  },
  async question() {
    const canUseTool = async (_, input) => ({ behavior: 'allow', updatedInput: { ...input, answers: { 'Which?': 'B' } } });
    const { result } = await converse('session-question', 'question', { options: { canUseTool } });
    assert.equal(result, 'answered {"Which?":"B"}');
  },
  async interrupt() {
    const onMessage = (q, message) => message.type === 'system' && q.interrupt();
    const { result } = await converse('session-interrupt', 'wait', { onMessage });
    assert.equal(result, 'interrupted');
  },
  async reconnect() {
    // Cut after one event, after two, and so on, up to more than there are.
    const all = [];
    for (let events = 1; events <= 10; events += 1) all.push(reconnected(events));
    await Promise.all(all);
  },
  async 'read-only'() {
    const body = JSON.stringify({ events: [{ payload: { type: 'user', uuid: 'u', message: { role: 'user', content: 'x' } } }] });
    const headers = { Authorization: `Bearer ${reader}`, 'Content-Type': 'application/json' };
    const answer = await fetch(`${url}/v1/sessions/session-ro/events`, { method: 'POST', headers, body });
    assert.equal(answer.status, 403);
    assert.deepEqual(await log('session-ro'), []);
  },
};

async function reconnected(events) {
  const session = `session-cut-${events}`;
  const proxy = await cutting(events, 1);
  try {
    const { result, seqs } = await converse(session, 'permission', { base: proxy.url, options: { canUseTool: allow } });
    assert.equal(result, 'permission: allow');
    const stored = await log(session);
    const heads = stored.filter((event) => !event.payload.type.startsWith('control_')).map((event) => event.sequence_num);
    assert.deepEqual(seqs, heads, `cut after ${events}: each event once, in order`);
    assert.equal(stored.filter((event) => event.payload.type === 'user').length, 1);
    const cut = events < stored.length;
    assert.deepEqual(proxy.cursors, cut ? [0, events] : [0], `cut after ${events}`);
  } finally {
    proxy.close();
  }
}

const chosen = process.argv.slice(2);
let failed = 0;
for (const [scenario, run] of Object.entries(scenarios)) {
  if (chosen.length && !chosen.includes(scenario)) continue;
  const start = performance.now();
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error('it did not end within 60 s')), 60_000)));
  const why = await Promise.race([run(), late]).then(() => null, (error) => error.stack ?? String(error));
  clearTimeout(timer);
  failed += why === null ? 0 : 1;
  const report = { scenario, ok: why === null, ms: Math.round(performance.now() - start), why };
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
host.stdin.end();
await ended;
process.exit(failed ? 1 : 0);
