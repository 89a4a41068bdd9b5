// How a script is played: the one place that knows how the CLI's stand-in is started and where it leaves its reports.

import { mkdirSync, readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { binary } from "./binary.js";
import { readProcess } from "./trace.js";

/** Prepares the simulated CLI to play a script, with a directory for what it leaves behind. */
export function start(script, place) {
  const reports = join(place, "reports");
  const gates = join(place, "gates");
  mkdirSync(reports);
  mkdirSync(gates);
  return new Player(binary(), reports, gates, {
    OUTRIGGER_SIM_REPORT: reports,
    OUTRIGGER_SIM_GATES: gates,
    // Empty is none: a script in the environment of the tests is not for this one.
    OUTRIGGER_SIM_SCRIPT: script ?? "",
  });
}

/** A stand-in for the CLI that is ready to be started, any number of times. */
class Player {
  #reports;

  constructor(path, reports, gates, env) {
    this.path = path;
    this.gates = gates;
    this.env = env;
    this.#reports = reports;
  }

  /** What the processes reported, the first first. Waits for those that still run. */
  async processes(patience) {
    for (const until = Date.now() + patience; this.#unwritten().some(isAlive) && Date.now() < until; ) await sleep(5);
    const found = this.#pids().map((pid) => {
      const file = this.#file(pid);
      const text = readFileSync(file, "utf8");
      if (text) {
        const report = JSON.parse(text);
        return [report.started_ms, readProcess(pid, report)];
      }
      const what = isAlive(pid)
        ? "was still running at the end"
        : "ended without a report: it was killed, or refused its arguments";
      const flaws = [{ place: null, what: `process ${pid} ${what}` }];
      return [statSync(file).mtimeMs, readProcess(pid, { arguments: [], exit: { code: null, signal: null }, flaws, lines: [] })];
    });
    return found.sort(([a], [b]) => a - b).map(([, process]) => process);
  }

  /** Ends processes that their program left behind. */
  end() {
    for (const pid of this.#unwritten().filter(isAlive)) {
      try {
        process.kill(pid, "SIGTERM");
      } catch (error) {
        if (error.code !== "ESRCH") throw error;
      }
    }
  }

  #file(pid) {
    return join(this.#reports, `${pid}.json`);
  }

  #pids() {
    const names = readdirSync(this.#reports).filter((name) => name.endsWith(".json"));
    return names.map((name) => Number(name.slice(0, -".json".length)));
  }

  /** The processes that have not written their report. */
  #unwritten() {
    return this.#pids().filter((pid) => statSync(this.#file(pid)).size === 0);
  }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}
