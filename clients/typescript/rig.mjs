// What the scenarios share: a place of their own, the SDK's options for it, and what the simulator saw.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { query } from "@anthropic-ai/claude-agent-sdk";

/** The executable that stands in for the CLI. */
const SIMULATOR = process.env.OUTRIGGER_SIM;

/** A home, a project and a log for the processes of one scenario. */
export class Rig {
  #chats = [];
  /** Whether the scenario starts no CLI. */
  offline = false;

  constructor(root) {
    this.root = root;
    this.home = join(root, "home");
    this.project = join(root, "project");
    this.log = join(root, "log.jsonl");
    for (const directory of [join(this.home, ".claude"), this.project, join(root, "t")]) {
      mkdirSync(directory, { recursive: true });
    }
  }

  /** Options that name the simulator as the CLI and keep it in this place. */
  options({ env, ...more } = {}) {
    return {
      pathToClaudeCodeExecutable: SIMULATOR,
      cwd: this.project,
      env: {
        ...process.env,
        HOME: this.home,
        CLAUDE_CONFIG_DIR: join(this.home, ".claude"),
        CLAUDE_CODE_TMPDIR: join(this.root, "t"),
        TMPDIR: join(this.root, "t"),
        OUTRIGGER_SIM_LOG: this.log,
        OUTRIGGER_SIM_REAL_TOOLS: "1",
        ...env,
      },
      ...more,
    };
  }

  /** Asks once, with a string, and collects everything. */
  async ask(prompt, more) {
    const messages = [];
    for await (const message of query({ prompt, options: this.options(more) })) messages.push(message);
    return messages;
  }

  /** A conversation; it ends when `use` has. */
  async chat(more, use) {
    const chat = new Chat(this.options(more));
    this.#chats.push(chat);
    try {
      await use(chat);
      await chat.end();
    } finally {
      chat.query.close();
    }
  }

  /** What was logged, after a failure: once all has ended that was started, if it does. */
  async remains() {
    for (const chat of this.#chats) chat.query.close();
    for (const until = Date.now() + 7_000; Date.now() < until; await sleep(10)) {
      if (existsSync(this.log)) return readFileSync(this.log, "utf8");
    }
    return null;
  }

  /** What was logged, once this many processes have ended. */
  async processes(count = 1) {
    for (const until = Date.now() + 20_000; ; await sleep(10)) {
      const found = readLog(this.log);
      if (found.length >= count && found.every((process) => process.exit)) {
        assert.equal(found.length, count, "processes");
        return found;
      }
      assert(Date.now() < until, `${found.length} of ${count} processes have ended and logged in 20 s`);
    }
  }

  /** Variables that have the simulator play this script and write its report here. */
  script(name) {
    const report = join(this.root, "report.json");
    return { OUTRIGGER_SIM_SCRIPT: join(process.env.OUTRIGGER_SCRIPTS, name), OUTRIGGER_SIM_REPORT: report };
  }

  /** What the script of the only process did not like, once that has ended. */
  async flaws() {
    await this.process();
    const report = join(this.root, "report.json");
    for (const until = Date.now() + 20_000; !existsSync(report); await sleep(10)) {
      assert(Date.now() < until, "there is no report of the script in 20 s");
    }
    return JSON.parse(readFileSync(report, "utf8")).flaws.map((flaw) => flaw.what);
  }

  /** What the only process logged. */
  async process() {
    return (await this.processes())[0];
  }
}

/** A session to which prompts are sent one after the other. */
class Chat {
  #waiting = [];
  #wake = () => {};
  #over = false;

  constructor(options) {
    this.query = query({ prompt: this.#prompts(), options });
  }

  async *#prompts() {
    while (!this.#over || this.#waiting.length > 0) {
      if (this.#waiting.length === 0) await new Promise((resolve) => (this.#wake = resolve));
      else yield this.#waiting.shift();
    }
  }

  /** Sends a prompt and does not wait. */
  send(text) {
    const message = { role: "user", content: text };
    this.#waiting.push({ type: "user", message, parent_tool_use_id: null, session_id: "" });
    this.#wake();
  }

  /** Collects messages up to the next result; `seen` gets each of them. */
  async collect(seen = async () => {}) {
    for (const messages = []; ; ) {
      const { value, done } = await this.query.next();
      assert(!done, "the stream ended before a result came");
      messages.push(value);
      await seen(value, messages);
      if (value.type === "result") return messages;
    }
  }

  /** Sends a prompt and collects what comes up to its result. */
  turn(text, seen) {
    this.send(text);
    return this.collect(seen);
  }

  /** Ends the input, and waits for the end of the stream. */
  async end() {
    this.#over = true;
    this.#wake();
    while (!(await this.query.next()).done);
  }
}

function readLog(path) {
  const processes = [];
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  for (const line of text.split("\n").slice(0, -1)) {
    const { dir, msg } = JSON.parse(line);
    if (dir === "err") processes.at(-1).said.push(msg.raw);
    else if (dir !== "meta") processes.at(-1).frames.push([dir, msg]);
    else if (msg.argv) processes.push(new Process(msg.argv));
    else processes.at(-1).exit = msg;
  }
  return processes;
}

/** One run of the simulator, as it logged it. */
class Process {
  frames = [];
  said = [];
  exit = null;

  constructor(argv) {
    this.argv = argv;
  }

  /** The frames of a kind that it got from the SDK. */
  read(kind) {
    return this.frames.filter(([dir, frame]) => dir === "in" && kindOf(frame) === kind).map(([, frame]) => frame);
  }

  /** The frames of a kind that it wrote to the SDK. */
  wrote(kind) {
    return this.frames.filter(([dir, frame]) => dir === "out" && kindOf(frame) === kind).map(([, frame]) => frame);
  }
}

/** `type` or `type/subtype`, the subtype being that of the payload for control frames. */
export function kindOf(frame) {
  const subtypes = {
    control_request: () => frame.request.subtype,
    control_response: () => frame.response.subtype,
    command_lifecycle: () => frame.state,
    stream_event: () => frame.event.type,
  };
  const subtype = (subtypes[frame.type] ?? (() => frame.subtype))();
  return subtype ? `${frame.type}/${subtype}` : frame.type;
}

/** The messages of a kind. */
export function of(messages, kind) {
  return messages.filter((message) => kindOf(message) === kind || message.type === kind);
}

/** The only message of a kind. */
export function only(messages, kind) {
  const found = of(messages, kind);
  assert.equal(found.length, 1, `${kind}: ${found.length} in ${messages.map(kindOf)}`);
  return found[0];
}

/** What the model said, joined. */
export function text(messages) {
  const blocks = of(messages, "assistant").flatMap((message) => message.message.content);
  return blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** The results of tool calls. */
export function toolResults(messages) {
  const contents = of(messages, "user").map((message) => message.message.content);
  return contents.flatMap((content) => (Array.isArray(content) ? content : [])).filter((block) => block.type === "tool_result");
}

/** The text of a tool result. */
export function content(block) {
  return typeof block.content === "string" ? block.content : block.content.map((part) => part.text ?? "").join("");
}

/** Checks that a turn ended well and with this answer. */
export function succeeded(messages, answer) {
  const end = only(messages, "result");
  assert.deepEqual([end.subtype, end.is_error, end.result], ["success", false, answer]);
  return end;
}
