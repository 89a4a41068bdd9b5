// Where the executable is.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { executable, installed, libcOfThisMachine, platforms } from "./platform.js";

export function binary() {
  const named = process.env.OUTRIGGER_SIM;
  if (named) {
    if (!existsSync(named)) throw new Error(`OUTRIGGER_SIM names ${named}, and there is no such file`);
    return named;
  }
  const candidates = platforms().map(({ name }) => `@outrigger/sim-${name}`);
  const found = candidates.map((name) => installed(name, executable("outrigger-sim"))).find(Boolean);
  if (found) return found;
  if (candidates.length === 0) {
    throw new Error(
      `outrigger-sim has no package for ${process.platform} on ${process.arch}. ` +
        "In a clone of its repository, `cargo install --locked --path crates/sim --bin outrigger-sim` builds it: name it in OUTRIGGER_SIM.",
    );
  }
  throw new Error(
    `the executable of outrigger-sim is not installed: its package ${candidates.join(" or ")} is missing. ` +
      "It is an optional dependency; install again without `--omit=optional`, or name an executable in OUTRIGGER_SIM.",
  );
}

const SDK = "@anthropic-ai/claude-agent-sdk";

/** The CLI in the optional package that the official SDK has for this machine; none if it was installed without. */
export function sdkCli(base) {
  // As the program finds the SDK, then as this package does.
  for (const from of [join(base, "_"), fileURLToPath(import.meta.url)]) {
    try {
      const sdk = createRequire(createRequire(from).resolve(SDK));
      const musl = libcOfThisMachine() === "musl" ? "-musl" : "";
      return sdk.resolve(`${SDK}-${process.platform}-${process.arch}${musl}/${executable("claude")}`);
    } catch (error) {
      if (error.code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  return undefined;
}
