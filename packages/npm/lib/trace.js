// What went through between a program and the simulated CLI.

import { AssertionError } from "node:assert";
import { inspect } from "node:util";

export class Trace {
  constructor(processes, flaws) {
    this.processes = processes;
    this.flaws = flaws;
  }

  /** A report of `outrigger-sim`. */
  static read(report) {
    return new Trace(report.processes.map(readProcess), report.flaws);
  }

  get frames() {
    return this.processes.flatMap((process) => process.frames);
  }

  ofKind(kind) {
    return this.frames.filter((frame) => frame.kind === kind);
  }

  get prompts() {
    const sent = this.ofKind("user").filter((frame) => frame.sender === "client");
    return sent.map((frame) => text(frame.data.message?.content));
  }

  get results() {
    return this.frames.filter((frame) => frame.data.type === "result").map((frame) => frame.data);
  }

  get toolCalls() {
    return this.processes.flatMap((process, n) => toolCalls(process, this.processes.slice(n + 1)));
  }

  get permissionRequests() {
    return this.#requests("can_use_tool").map(({ request, reply, error }) => {
      return { tool: request.tool_name, input: request.input ?? {}, outcome: outcomeOf(reply), reply, error };
    });
  }

  get hookCalls() {
    const calls = this.#requests("hook_callback");
    return calls.map(({ request, reply, error }) => ({
      event: request.input?.hook_event_name ?? "",
      input: request.input ?? {},
      reply,
      error,
    }));
  }

  /**
   * The requests of the CLI with this subtype, each with the reply or the error that it read: the first one, unless it had taken the
   * request back before.
   */
  #requests(subtype) {
    return this.processes.flatMap(({ frames }) => {
      const replies = new Map();
      for (const { sender, data } of frames) {
        const isReply = sender === "client" && data.type === "control_response";
        if (!isReply && !(sender === "cli" && data.type === "control_cancel_request")) continue;
        const response = isReply ? (data.response ?? {}) : { request_id: data.request_id };
        if (!replies.has(response.request_id)) replies.set(response.request_id, response);
      }
      const asked = frames.filter(({ sender, kind }) => sender === "cli" && kind === `control_request/${subtype}`);
      return asked.map(({ data }) => {
        const { response, error } = replies.get(data.request_id) ?? {};
        return { request: data.request ?? {}, reply: response ?? null, error: error ?? null };
      });
    });
  }

  assertPrompts(...expected) {
    hold(matches(expected, this.prompts), `expected the prompts ${show(expected)}`, this.prompts);
  }

  assertTool(name, { input, times, isError } = {}) {
    const found = this.toolCalls.filter(
      (call) =>
        call.name === name &&
        matches(input ?? {}, call.input) &&
        (isError === undefined || (call.result !== null && call.isError === isError)),
    );
    const wanted = times === undefined ? `a call of ${name}` : `${times} calls of ${name}`;
    const withInput = input === undefined ? "" : ` with ${show(input)}`;
    const ended = isError === undefined ? "" : isError ? " that fails" : " that succeeds";
    const held = times === undefined ? found.length > 0 : found.length === times;
    hold(held, `expected ${wanted}${withInput}${ended}`, this.toolCalls);
    return found;
  }

  assertPermission(tool, outcome, input) {
    const found = this.permissionRequests.find(
      (request) => request.tool === tool && request.outcome === outcome && matches(input ?? {}, request.input),
    );
    const withInput = input === undefined ? "" : ` with ${show(input)}`;
    hold(found, `expected a request for ${tool}${withInput} that is ${outcome}`, this.permissionRequests);
    return found;
  }

  assertHook(event, { times } = {}) {
    const found = this.hookCalls.filter((call) => call.event === event);
    const wanted = times === undefined ? "a call" : `${times} calls`;
    const held = times === undefined ? found.length > 0 : found.length === times;
    hold(held, `expected ${wanted} of a hook for ${event}`, this.hookCalls);
    return found;
  }

  summary() {
    const ends = ({ exitCode, signal, running }) =>
      exitCode !== null ? `exit code ${exitCode}` : signal !== null ? `signal ${signal}` : running ? "still runs" : "ended";
    const lines = this.processes.flatMap((process) => [
      `process ${process.pid}: ${ends(process)}`,
      ...process.frames.map((frame) => {
        const arrow = frame.sender === "client" ? "->" : "<-";
        return `  ${frame.atMs.toFixed(1).padStart(8)} ms ${arrow} ${frame.kind} ${gist(frame)}`.trimEnd();
      }),
    ]);
    return lines.join("\n");
  }
}

function readProcess(report) {
  const frames = report.lines.map((line) => ({ atMs: line.at_ms, sender: line.from, kind: line.kind, data: line.frame }));
  const { code, signal } = report.exit;
  return { pid: report.pid, arguments: report.arguments, cwd: report.cwd, running: report.running, exitCode: code, signal, frames };
}

function toolCalls(process, later) {
  const results = new Map(blocksOf(process, "user", "tool_result").map(({ block }) => [block.tool_use_id, block]));
  // A call that this process left open may have its result in one that goes on with the session.
  for (const other of later.filter((other) => sessionOf(other) === sessionOf(process))) {
    const own = new Set(blocksOf(other, "assistant", "tool_use").map(({ block }) => block.id));
    for (const { block } of blocksOf(other, "user", "tool_result")) {
      if (!own.has(block.tool_use_id) && !results.has(block.tool_use_id)) results.set(block.tool_use_id, block);
    }
  }
  return blocksOf(process, "assistant", "tool_use").map(({ block, data }) => {
    const result = results.get(block.id);
    return {
      id: block.id,
      name: block.name,
      input: block.input ?? {},
      parent: data.parent_tool_use_id ?? null,
      result: result ? text(result.content) : null,
      isError: result?.is_error === true,
    };
  });
}

function sessionOf({ frames }) {
  return frames.find(({ sender, data }) => sender === "cli" && data.session_id)?.data.session_id;
}

function blocksOf({ frames }, kind, type) {
  return frames
    .filter((frame) => frame.sender === "cli" && frame.kind === kind)
    .flatMap(({ data }) => blocks(data).filter((block) => block.type === type).map((block) => ({ block, data })));
}

/** What a reply to a request for a permission decides, as the CLI reads it. */
function outcomeOf(reply) {
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  if (reply?.behavior === "allow" && (reply.updatedInput === undefined || isObject(reply.updatedInput))) return "allowed";
  if (reply?.behavior === "deny" && typeof reply.message === "string") return "denied";
  return "failed";
}

function blocks(data) {
  const content = data.message?.content;
  return Array.isArray(content) ? content : [];
}

function text(content) {
  if (Array.isArray(content)) return content.map((block) => block.text ?? "").join("");
  return content ?? "";
}

/** Whether an object has the keys of the pattern at least, at every depth. */
function matches(pattern, value) {
  if (pattern === null || typeof pattern !== "object") return pattern === value;
  if (value === null || typeof value !== "object" || Array.isArray(pattern) !== Array.isArray(value)) return false;
  if (Array.isArray(pattern) && pattern.length !== value.length) return false;
  return Object.entries(pattern).every(([key, item]) => Object.hasOwn(value, key) && matches(item, value[key]));
}

function gist({ kind, data }) {
  let gist = data.result ?? "";
  if (kind === "user" || kind === "assistant") {
    const calls = blocks(data).filter((block) => block.type === "tool_use");
    gist =
      calls.map((block) => `${block.name} ${show(block.input)}`).join("; ") ||
      text(data.message?.content) ||
      blocks(data).map((block) => text(block.content)).join("");
  } else if (kind === "control_request/can_use_tool") {
    gist = `${data.request.tool_name} ${show(data.request.input)}`;
  } else if (data.type === "control_response") {
    gist = data.response?.error ?? data.response?.response?.behavior ?? "";
  }
  const short = String(gist).replaceAll("\n", " ");
  return short.length <= 120 ? short : `${short.slice(0, 119)}…`;
}

function show(value) {
  return inspect(value, { breakLength: Infinity, depth: 4 });
}

function hold(condition, expected, seen) {
  if (condition) return;
  const there = seen.map((item) => `\n  ${show(item)}`).join("") || " nothing";
  throw new AssertionError({ message: `${expected}, but there was:${there}`, stackStartFn: hold });
}
