// One script, for one test.

import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { start } from "./player.js";
import { Trace } from "./trace.js";

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

  constructor(script, { base = process.cwd(), env = {}, patience = 10_000 } = {}) {
    // Without links, since the CLI names a project by its resolved path.
    this.place = realpathSync(mkdtempSync(join(tmpdir(), "outrigger-sim-")));
    this.home = join(this.place, "home");
    this.cwd = join(this.place, "project");
    for (const directory of [join(this.home, ".claude"), this.cwd, join(this.place, "tmp")]) {
      mkdirSync(directory, { recursive: true });
    }
    this.#patience = patience;
    this.#player = start(fileOf(script, this.place, base), this.place);
    this.path = this.#player.path;
    this.env = {
      ...withoutAccounts(process.env),
      HOME: this.home,
      CLAUDE_CONFIG_DIR: join(this.home, ".claude"),
      CLAUDE_CODE_TMPDIR: join(this.place, "tmp"),
      ANTHROPIC_API_KEY: "dummy",
      ...this.#player.env,
      ...env,
    };
  }

  get options() {
    return { pathToClaudeCodeExecutable: this.path, env: { ...this.env }, cwd: this.cwd };
  }

  async trace() {
    return new Trace(await this.#player.processes(this.#patience));
  }

  async check() {
    const trace = await this.trace();
    const flaws = trace.processes.flatMap((process) => process.flaws);
    if (trace.processes.length === 0) {
      const what =
        "no process of the simulated CLI was started: the program has to be given `pathToClaudeCodeExecutable` and `env`";
      flaws.push({ place: null, what });
    }
    if (flaws.length > 0) throw new Discontent(flaws, trace);
    return trace;
  }

  end() {
    this.#ended ??= (async () => {
      try {
        await this.check();
      } finally {
        this.#player.end();
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
  if (typeof script === "string" && !script.includes("\n") && !script.trimStart().startsWith("{")) {
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
