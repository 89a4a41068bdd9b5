// How a script is played: the one place that knows how the CLI's stand-in is put in place and asked for its report.

import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { binary, sdkCli } from "./binary.js";
import { Trace } from "./trace.js";

/** How often it is looked whether there is an answer, in milliseconds. */
const LOOK = 5;

/** How long it may take to put the CLI in place, in milliseconds, and how long if npm may have to fetch it. */
const PLACING = 30_000;
const FETCHING = 600_000;

/** How long it may take to take it away, in milliseconds. */
const LEAVING = 10_000;

export class CannotPlay extends Error {
  constructor(what) {
    super(what);
    this.name = "CannotPlay";
  }
}

/** What OUTRIGGER_SIM_REAL says: `1` for the real CLI, or the path of its executable. */
export function realFromEnvironment() {
  const named = process.env.OUTRIGGER_SIM_REAL ?? "";
  return named === "" || named === "0" ? false : named === "1" ? true : named;
}

/** A CLI in place, which may be started any number of times until this ends. */
export class Player {
  #child;
  #ended;
  #output;
  #answered = 0;
  #asking = Promise.resolve();
  #last = new Trace([], []);

  /** Puts it in place: its home, project and gates are made in the directory `place`. */
  constructor(script, place, real, base) {
    const cli = real === true ? sdkCli(base) : real;
    const flags = real === false ? ["--sim"] : ["--real", ...(cli ? ["--cli", cli] : [])];
    // What it says is read from a file, since a test gets its simulation at once, without waiting for events.
    this.#output = join(place, "stage.ndjson");
    const output = openSync(this.#output, "a");
    // In a session of its own: Ctrl-C is for the tests, and this ends with its stdin.
    this.#child = spawn(binary(), ["stage", ...flags, place, ...(script ? [script] : [])], {
      stdio: ["pipe", output, "inherit"],
      detached: true,
    });
    closeSync(output);
    this.#ended = new Promise((resolve) => this.#child.on("exit", resolve).on("error", resolve));
    // Who asks one that has ended gets no answer.
    this.#child.stdin.on("error", () => {});
    try {
      const there = this.#first(Date.now() + (real === false || cli ? PLACING : FETCHING));
      this.path = there.claude;
      this.env = there.env;
      this.home = there.home;
      this.cwd = there.project;
      this.gates = there.gates;
    } catch (error) {
      this.#child.stdin.destroy();
      this.#child.kill("SIGKILL");
      throw error;
    } finally {
      // It may outlive neither the tests nor keep them alive.
      this.#child.unref();
      this.#child.stdin.unref?.();
    }
  }

  /** What it says first. Waits without events, which come only later. */
  #first(until) {
    const cell = new Int32Array(new SharedArrayBuffer(4));
    for (;;) {
      const over = hasEnded(this.#child.pid) || Date.now() > until;
      const there = this.#next();
      if (there !== undefined) return there;
      if (over) throw new CannotPlay(`${binary()} does not start: if it said why, that is on stderr`);
      Atomics.wait(cell, 0, 0, LOOK);
    }
  }

  /** What went through. Waits for the processes that still run, for at most so many milliseconds. */
  trace(patience) {
    // One question after the other.
    const answer = this.#asking.then(() => this.#ask(patience));
    this.#asking = answer.catch(() => {});
    return answer;
  }

  async #ask(patience) {
    if (this.#child.stdin.writableEnded) return this.#last;
    this.#child.stdin.write(`${JSON.stringify({ report: { patience_ms: Math.ceil(patience) } })}\n`);
    let gone = false;
    this.#ended.then(() => (gone = true));
    for (;;) {
      const ended = gone;
      const report = this.#next();
      if (report) {
        this.#last = Trace.read(report);
        return this.#last;
      }
      if (ended) throw new CannotPlay(`${binary()} ended: what it said is on stderr`);
      await sleep(LOOK);
    }
  }

  /** Ends what the program left behind, and removes what was put in place. */
  async end() {
    this.#child.stdin.end();
    const late = setTimeout(() => this.#child.kill("SIGKILL"), LEAVING);
    await this.#ended;
    clearTimeout(late);
  }

  /** The next answer, if it is there as a whole. */
  #next() {
    const text = readFileSync(this.#output, "utf8").slice(this.#answered);
    const end = text.indexOf("\n");
    if (end < 0) return undefined;
    this.#answered += end + 1;
    const answer = JSON.parse(text.slice(0, end));
    if (answer.error !== undefined) throw new CannotPlay(answer.error);
    return answer;
  }
}

/** Whether a child has ended, before there is an event for it. Without `/proc` this is known only of one that was not started. */
function hasEnded(pid) {
  if (pid === undefined) return true;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat[stat.lastIndexOf(")") + 2] === "Z";
  } catch {
    return false;
  }
}
