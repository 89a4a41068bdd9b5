// One script, for one test.

import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { Player, realFromEnvironment } from "./player.js";

export class Discontent extends Error {
  constructor(flaws, trace) {
    const lines = flaws.map(({ place, what }) => `\n  ${place ? `${place}: ` : ""}${what}`);
    super(`the script is not content with the program:${lines.join("")}\nWhat went through:\n${trace.summary()}`);
    this.name = "Discontent";
    this.flaws = flaws;
  }
}

export function simulate(script, options) {
  return new Simulation(script, options);
}

export class Simulation {
  #player;
  #patience;
  #ended;

  constructor(script, { base = process.cwd(), env = {}, patience = 10_000, real = realFromEnvironment() } = {}) {
    // Without links, since the CLI names a project by its resolved path.
    this.place = realpathSync(mkdtempSync(join(tmpdir(), "outrigger-sim-")));
    this.#patience = patience;
    this.real = real !== false;
    try {
      this.#player = new Player(fileOf(script, this.place, base), this.place, real, base);
    } catch (error) {
      rmSync(this.place, { recursive: true, force: true });
      throw error;
    }
    this.path = this.#player.path;
    this.home = this.#player.home;
    this.cwd = this.#player.cwd;
    this.env = { ...withoutAccounts(process.env), ...this.#player.env, ...env };
  }

  get options() {
    return { pathToClaudeCodeExecutable: this.path, env: { ...this.env }, cwd: this.cwd };
  }

  trace() {
    return this.#player.trace(this.#patience);
  }

  async check() {
    const trace = await this.trace();
    if (trace.processes.length === 0) {
      const what = "no process of the CLI was started: the program has to be given `pathToClaudeCodeExecutable`";
      throw new Discontent([{ place: null, what }], trace);
    }
    if (trace.flaws.length > 0) throw new Discontent(trace.flaws, trace);
    return trace;
  }

  end() {
    this.#ended ??= (async () => {
      try {
        await this.check();
      } finally {
        await this.#player.end();
        rmSync(this.place, { recursive: true, force: true, maxRetries: 5 });
      }
    })();
    return this.#ended;
  }

  gateReached(name) {
    return existsSync(join(this.#player.gates, `${name}.reached`));
  }

  openGate(name) {
    writeFileSync(join(this.#player.gates, name), "");
  }
}

/** The script as a file. */
function fileOf(script, place, base) {
  if (script === undefined) return undefined;
  const file = join(place, "script.yaml");
  if (typeof script === "string" && !script.includes("\n") && !/^\s*(\{|\w+:\s)/.test(script)) {
    const named = resolve(base, script);
    if (!existsSync(named)) throw new Error(`there is no script ${named}`);
    return named;
  }
  if (script instanceof URL) return fileURLToPath(script);
  // JSON is YAML.
  writeFileSync(file, typeof script === "string" ? script : JSON.stringify(script, null, 1));
  return file;
}

/** No account and no settings of the user have a part in a simulation. */
function withoutAccounts(env) {
  const kept = Object.entries(env).filter(([name]) => !/^(ANTHROPIC_|CLAUDE_)/.test(name));
  return Object.fromEntries(kept);
}
