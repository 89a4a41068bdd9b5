// The package that has an executable for this machine.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);
const PLATFORMS = JSON.parse(readFileSync(new URL("../platforms.json", import.meta.url), "utf8"));

/** The name of an executable as this system has it. */
export function executable(name, os = process.platform) {
  return os === "win32" ? `${name}.exe` : name;
}

/** The platforms whose executables may run on this machine. */
export function platforms(os = process.platform, cpu = process.arch, libc = libcOfThisMachine()) {
  return PLATFORMS.filter((one) => one.os === os && one.cpu === cpu && (!one.libc || !libc || one.libc === libc));
}

/** Where the package has this file; undefined if the package is not installed, or has no such file. */
export function installed(name, file, from = require) {
  try {
    const path = join(dirname(from.resolve(`${name}/package.json`)), file);
    return existsSync(path) ? path : undefined;
  } catch (error) {
    if (error.code !== "MODULE_NOT_FOUND") throw error;
    return undefined;
  }
}

export function libcOfThisMachine() {
  if (process.platform !== "linux") return undefined;
  return process.report.getReport().header.glibcVersionRuntime ? "glibc" : "musl";
}
