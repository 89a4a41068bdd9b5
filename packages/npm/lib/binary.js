// Where the executable is.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const PLATFORMS = JSON.parse(readFileSync(new URL("../platforms.json", import.meta.url), "utf8"));

/** The name of the executable in its package. */
export function executable(os = process.platform) {
  return os === "win32" ? "outrigger-sim.exe" : "outrigger-sim";
}

/** The packages with an executable that may run on this machine. */
export function packages(os = process.platform, cpu = process.arch, libc = libcOfThisMachine()) {
  const fits = (platform) => platform.os === os && platform.cpu === cpu && (!platform.libc || !libc || platform.libc === libc);
  return PLATFORMS.filter(fits).map((platform) => platform.package);
}

export function binary() {
  const named = process.env.OUTRIGGER_SIM;
  if (named) {
    if (!existsSync(named)) throw new Error(`OUTRIGGER_SIM names ${named}, and there is no such file`);
    return named;
  }
  const candidates = packages();
  for (const name of candidates) {
    try {
      const path = join(dirname(require.resolve(`${name}/package.json`)), executable());
      if (existsSync(path)) return path;
    } catch (error) {
      if (error.code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  if (candidates.length === 0) {
    throw new Error(
      `outrigger-sim has no package for ${process.platform} on ${process.arch}. ` +
        "Build the executable with `cargo install outrigger-sim`, and name it in OUTRIGGER_SIM.",
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
      const name = process.platform === "win32" ? "claude.exe" : "claude";
      return sdk.resolve(`${SDK}-${process.platform}-${process.arch}${musl}/${name}`);
    } catch (error) {
      if (error.code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  return undefined;
}

function libcOfThisMachine() {
  if (process.platform !== "linux") return undefined;
  return process.report.getReport().header.glibcVersionRuntime ? "glibc" : "musl";
}
