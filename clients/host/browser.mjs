// The official browser client, unmodified, against a host: prompts, decisions, questions, interrupts, and a connection that is
// cut after each event. Then schemathesis, with the host's OpenAPI document. Each scenario is reported as a line of JSON.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import http from 'node:http';
import readline from 'node:readline';
import { query, getCcrEvent, getSseLastSequenceNum } from '@anthropic-ai/claude-agent-sdk/browser';

const host = spawn(process.env.SIMULATED_HOST, { stdio: ['pipe', 'pipe', 'inherit'] });
const ended = new Promise((resolve) => host.once('exit', resolve));
const [line] = await new Promise((resolve) => {
  readline.createInterface({ input: host.stdout }).once('line', (line) => resolve([line]));
});
const { url, cwd, token, reader } = JSON.parse(line);
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
async function converse(session, text, { base = url, options = {}, onMessage, results = 1 } = {}) {
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  async function* prompts() {
    if (text !== undefined) yield { type: 'user', message: { role: 'user', content: [{ type: 'text', text }] }, parent_tool_use_id: null, session_id: '' };
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
    if (message.type === 'result' && --results === 0) break;
  }
  finish();
  return { messages, seqs, deliveries, cursor: getSseLastSequenceNum(q), result: messages.at(-1).result };
}

/** The id of a new session. */
async function created() {
  const headers = { ...auth, 'Content-Type': 'application/json' };
  const answer = await fetch(`${url}/v1/sessions`, { method: 'POST', headers, body: JSON.stringify({ cwd }) });
  assert.equal(answer.status, 201);
  return (await answer.json()).id;
}

async function log(session) {
  const answer = await fetch(`${url}/v1/sessions/${session}/events?limit=1000`, { headers: auth });
  return (await answer.json()).events;
}

const allow = async (_, input) => ({ behavior: 'allow', updatedInput: input });

const ask = `%tool Write {"file_path":"a.txt","content":"x"}\n%say done`;
const questions = [{ question: 'Which?', header: 'Which', multiSelect: false,
  options: [{ label: 'A', description: 'a' }, { label: 'B', description: 'b' }] }];

/** What the tools of a conversation returned. */
const results = (messages) => messages.filter((message) => message.type === 'user' && Array.isArray(message.message.content))
  .flatMap((message) => message.message.content).filter((block) => block.type === 'tool_result');

const scenarios = {
  async prompt() {
    const { result, deliveries } = await converse(await created(), '%say hello');
    assert.equal(result, 'hello');
    assert.ok(deliveries.includes('DELIVERY_STATUS_PROCESSING'), deliveries.join());
  },
  async 'permission-allow'() {
    const asked = [];
    const canUseTool = async (tool, input) => (asked.push([tool, input.content]), allow(tool, input));
    const { messages } = await converse(await created(), ask, { options: { canUseTool } });
    assert.deepEqual(asked, [['Write', 'x']]);
    assert.match(results(messages)[0].content, /File created/);
  },
  async 'permission-deny'() {
    const canUseTool = async () => ({ behavior: 'deny', message: 'not today' });
    const { messages } = await converse(await created(), ask, { options: { canUseTool } });
    assert.match(results(messages)[0].content, /not today/);
  },
  async question() {
    const canUseTool = async (_, input) => ({ behavior: 'allow', updatedInput: { ...input, answers: { 'Which?': 'B' } } });
    const { messages } = await converse(await created(), `%tool AskUserQuestion ${JSON.stringify({ questions })}`, { options: { canUseTool } });
    assert.match(JSON.stringify(results(messages)), /Which\?.*B/);
  },
  async commands() {
    // What the process said when it started, without the operator's account.
    const session = await created();
    let known;
    const onMessage = async (q) => { known ??= [await q.supportedCommands(), await q.accountInfo()]; };
    await converse(session, '%say hi', { onMessage });
    assert.ok(known[0].length > 0);
    assert.deepEqual(known[1], {});
  },
  async interrupt() {
    const onMessage = (q, message) => message.type === 'system' && message.subtype === 'init' && q.interrupt();
    const { messages } = await converse(await created(), '%hang', { onMessage });
    assert.equal(messages.at(-1).subtype, 'error_during_execution');
  },
  async 'decided-elsewhere'() {
    // The official client drops its question when somebody else decides.
    const session = await created();
    const aborted = new Promise((resolve) => {
      const canUseTool = (_, __, { signal }) => new Promise((_, reject) => {
        signal.addEventListener('abort', () => (resolve(), reject(new Error('aborted'))));
        decideAllPending(session);
      });
      converse(session, ask, { options: { canUseTool } }).then(({ messages }) => {
        assert.match(results(messages)[0].content, /File created/);
      });
    });
    await aborted;
  },
  async 'late-reader'() {
    // A client that comes later reads all of it, and what it says about questions of before changes nothing.
    const session = await created();
    await converse(session, ask, { options: { canUseTool: allow } });
    const before = (await log(session)).length;
    const canUseTool = async () => ({ behavior: 'deny', message: 'too late' });
    const { messages } = await converse(session, '%say again', { options: { canUseTool }, results: 2 });
    const said = messages.filter((message) => message.type === 'result').map((message) => message.result);
    assert.deepEqual(said, ['done', 'again'], 'the replay comes first');
    const stored = await log(session);
    assert.ok(stored.length > before);
    assert.equal(stored.filter((event) => event.payload.type === 'approval_decided').length, 1);
  },
  async deferred() {
    // The call outlives its process, and the client: another one is asked, and its answer is carried out.
    const session = await created();
    const asked = [];
    const never = (tool) => (asked.push(tool), new Promise(() => {}));
    const first = await converse(session, '%tool Bash {"command":"touch made","description":"x"}\n%say done', { options: { canUseTool: never } });
    assert.equal(first.messages.at(-1).terminal_reason, 'tool_deferred');
    const again = async (tool, input) => (asked.push(tool), allow(tool, input));
    const second = await converse(session, undefined, { options: { canUseTool: again }, results: 2 });
    assert.deepEqual(asked, ['Bash', 'Bash']);
    assert.equal(second.result, 'done');
    assert.equal((await log(session)).filter((event) => event.payload.type === 'process_started').length, 2);
  },
  async reconnect() {
    // Cut after one event, after two, and so on, up to more than there are.
    const all = [];
    for (let events = 1; events <= 40; events += 1) all.push(reconnected(events));
    await Promise.all(all);
  },
  async schemathesis() {
    // Requests that the OpenAPI document describes, right and wrong ones: the host answers as the document says, and never fails.
    const args = ['run', `${url}/openapi.json`, '--header', `Authorization: Bearer ${token}`, '--exclude-path-regex', 'stream$',
      '--checks', 'not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance',
      '--phases', 'coverage,fuzzing', '--max-examples', '8', '--seed', '1', '--request-timeout', '20', '--no-color'];
    const tried = spawn(process.env.SCHEMATHESIS, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    tried.stdout.on('data', (data) => (said += data));
    const code = await new Promise((resolve) => tried.once('exit', resolve));
    assert.equal(code, 0, said);
    assert.match(said, /(\d+) generated, \1 passed/, said);
  },
  async 'read-only'() {
    const session = await created();
    const body = JSON.stringify({ events: [{ payload: { type: 'user', uuid: crypto.randomUUID(), message: { role: 'user', content: 'x' } } }] });
    const headers = { Authorization: `Bearer ${reader}`, 'Content-Type': 'application/json' };
    const answer = await fetch(`${url}/v1/sessions/${session}/events`, { method: 'POST', headers, body });
    assert.equal(answer.status, 403);
    assert.equal((await log(session)).length, 1);
  },
};

async function decideAllPending(session) {
  const headers = { ...auth, 'Content-Type': 'application/json' };
  const { approvals } = await (await fetch(`${url}/v1/approvals?state=pending&session=${session}`, { headers: auth })).json();
  for (const { id } of approvals) {
    const body = JSON.stringify({ behavior: 'allow' });
    const answer = await fetch(`${url}/v1/approvals/${id}/decision`, { method: 'POST', headers, body });
    assert.equal(answer.status, 200);
  }
}

/** Whether the official client hands an event to the program: it keeps control frames, and what is for hosts alone, to itself. */
const isMessage = ({ source, payload }) => (source === 'client' ? payload.type === 'user'
  : source === 'worker' && !payload.type.startsWith('control_') && !payload.sdk_host_only);

async function reconnected(events) {
  const session = await created();
  const proxy = await cutting(events, 1);
  try {
    const { result, seqs } = await converse(session, ask, { base: proxy.url, options: { canUseTool: allow } });
    assert.equal(result, 'done');
    const stored = (await log(session)).filter((event) => event.sequence_num <= seqs.at(-1));
    const heads = stored.filter(isMessage).map((event) => event.sequence_num);
    assert.deepEqual(seqs, heads, `cut after ${events}: each event once, in order`);
    assert.equal(stored.filter((event) => event.source === 'client' && event.payload.type === 'user').length, 1);
    assert.equal(stored.filter((event) => event.payload.type === 'approval_decided').length, 1);
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
