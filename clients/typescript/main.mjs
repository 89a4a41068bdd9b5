// Runs the scenarios through the official TypeScript SDK against the simulated CLI.
//
// Prints a JSON object for each: `scenario`, `ok`, `ms`, and `why` when it failed. Started by `cargo xtask clients`.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { Rig } from "./rig.mjs";

/** Milliseconds that a scenario may take. */
const LIMIT = 60_000;

const MODULES = ["turns", "permissions", "hooks", "tools", "control", "sessions", "output", "scripts", "settings"];

async function run(name, scenario) {
  const began = Date.now();
  const root = mkdtempSync(join(tmpdir(), "ts-"));
  const rig = new Rig(root);
  const timer = new AbortController();
  const late = sleep(LIMIT, undefined, { signal: timer.signal }).then(
    () => Promise.reject(new Error(`nothing more came within ${LIMIT / 1000} s`)),
    () => {},
  );
  let why;
  try {
    await Promise.race([scenario(rig), late]);
    assert(rig.offline || existsSync(rig.log), "another CLI than the simulator was started");
  } catch (error) {
    const place = /\((?:file:\/\/)?[^)]*\/([^/)]+:\d+):\d+\)/.exec(error?.stack ?? "")?.[1];
    why = `${error?.name}: ${error?.message} (${place})`;
  }
  timer.abort();
  const report = { scenario: name, ok: why === undefined, ms: Date.now() - began };
  if (why !== undefined) {
    Object.assign(report, { why, log: await rig.remains() });
  }
  console.log(JSON.stringify(report));
  rmSync(root, { recursive: true, force: true, maxRetries: 3 });
  return report.ok;
}

const wanted = process.argv.slice(2);
const good = [];
for (const module of MODULES) {
  for (const [key, scenario] of Object.entries(await import(`./${module}.mjs`))) {
    // What is no coroutine is shared with other modules.
    if (scenario.constructor.name !== "AsyncFunction") continue;
    const name = key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    if (wanted.length === 0 || wanted.includes(name)) good.push(await run(name, scenario));
  }
}
// What a failed scenario left running must not keep this program.
process.exit(good.length > 0 && good.every(Boolean) ? 0 : 1);
