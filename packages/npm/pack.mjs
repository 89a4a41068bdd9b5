// Packs the npm packages: `node pack.mjs EXECUTABLE OUT [TARGET]` writes two tarballs to OUT, one with the executable for one
// platform, and one with the helpers, which names the packages of all platforms as optional dependencies. TARGET is a target of
// Rust as in platforms.json; without it, that of this machine.

import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { executable, packages } from "./lib/binary.js";

const here = dirname(fileURLToPath(import.meta.url));
const read = (name) => JSON.parse(readFileSync(join(here, name), "utf8"));

const [built, out, target] = process.argv.slice(2);
if (!built || !out) {
  console.error("usage: node pack.mjs EXECUTABLE OUT [TARGET]");
  process.exit(2);
}
const platforms = read("platforms.json");
const platform = platforms.find((one) => (target ? one.target === target : one.package === packages()[0]));
if (!platform) {
  console.error(`platforms.json has no ${target ?? `${process.platform} on ${process.arch}`}`);
  process.exit(2);
}
const main = read("package.json");
const { version, license, repository, engines } = main;

mkdirSync(out, { recursive: true });
const staging = mkdtempSync(join(tmpdir(), "outrigger-pack-"));
try {
  pack(platform.package.split("/")[1], (directory) => {
    copyFileSync(built, join(directory, executable(platform.os)));
    chmodSync(join(directory, executable(platform.os)), 0o755);
    const text = `# ${platform.package}\n\nThe executable of \`outrigger-sim\` for ${platform.target}. Install \`outrigger-sim\`.\n`;
    writeFileSync(join(directory, "README.md"), text);
    const description = `outrigger-sim for ${platform.target}`;
    const fits = { os: [platform.os], cpu: [platform.cpu], ...(platform.libc && { libc: [platform.libc] }) };
    return { name: platform.package, version, description, license, repository, engines, ...fits, preferUnplugged: true };
  });
  pack("main", (directory) => {
    for (const name of ["bin", "lib", "platforms.json", "README.md"]) {
      cpSync(join(here, name), join(directory, name), { recursive: true });
    }
    const optionalDependencies = Object.fromEntries(platforms.map((one) => [one.package, version]));
    return { ...main, files: [...main.files, "LICENSE-*"], optionalDependencies };
  });
} finally {
  rmSync(staging, { recursive: true });
}

/** Packs what `fill` puts into a directory, with the package.json that it returns, and the licences. */
function pack(name, fill) {
  const directory = join(staging, name);
  mkdirSync(directory);
  writeFileSync(join(directory, "package.json"), `${JSON.stringify(fill(directory), null, 2)}\n`);
  for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) {
    copyFileSync(join(here, "..", "..", licence), join(directory, licence));
  }
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const packed = spawnSync(npm, ["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", resolve(out)], {
    cwd: directory,
    stdio: ["ignore", "inherit", "inherit"],
    shell: process.platform === "win32",
  });
  if (packed.error) throw packed.error;
  if (packed.status !== 0) throw new Error(`npm pack ended with ${packed.status}`);
}
