// Packs npm packages: `node pack.mjs sim|acp EXECUTABLE OUT [TARGET]` writes two tarballs to OUT, one with the executable for one
// platform, and the one that users install, which names the packages of all platforms as optional dependencies. TARGET is a target of
// Rust as in platforms.json; without it, that of this machine.

import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { executable, platforms } from "./lib/platform.js";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const read = (path) => JSON.parse(readFileSync(path, "utf8"));

/** What is packed: the directory of the package that users install, the crate of the executable, and what a platform's package depends on. */
const PRODUCTS = {
  sim: { source: here, crate: "outrigger-sim", dependencies: () => ({}) },
  acp: {
    source: join(here, "..", "acp"),
    crate: "outrigger-acp",
    // A newer CLI may come along, an older one than the tests ran may not.
    dependencies: ({ name }) => {
      const { version, packages } = read(join(root, "crates", "claude", "claude-cli.json"));
      return { [packages[name].package]: `^${version}` };
    },
  },
};

const [wanted, built, out, target] = process.argv.slice(2);
const product = PRODUCTS[wanted];
if (!product || !built || !out) {
  console.error(`usage: node pack.mjs ${Object.keys(PRODUCTS).join("|")} EXECUTABLE OUT [TARGET]`);
  process.exit(2);
}
const all = read(join(here, "platforms.json"));
const platform = target ? all.find((one) => one.target === target) : platforms()[0];
if (!platform) {
  console.error(`platforms.json has no ${target ?? `${process.platform} on ${process.arch}`}`);
  process.exit(2);
}
const main = read(join(product.source, "package.json"));
const { version, license, repository, engines } = main;
const packageOf = ({ name }) => `@outrigger/${wanted}-${name}`;

mkdirSync(out, { recursive: true });
const staging = mkdtempSync(join(tmpdir(), "outrigger-pack-"));
try {
  pack("platform", (directory) => {
    const program = join(directory, executable(main.name, platform.os));
    copyFileSync(built, program);
    chmodSync(program, 0o755);
    writeFileSync(join(directory, "THIRD-PARTY-NOTICES"), notices());
    const name = packageOf(platform);
    const text = `# ${name}\n\nThe executable of \`${main.name}\` for ${platform.target}. Install \`${main.name}\`.\n`;
    writeFileSync(join(directory, "README.md"), text);
    const description = `${main.name} for ${platform.target}`;
    const fits = { os: [platform.os], cpu: [platform.cpu], ...(platform.libc && { libc: [platform.libc] }) };
    const dependencies = product.dependencies(platform);
    return { name, version, description, license, repository, engines, ...fits, preferUnplugged: true, dependencies };
  });
  pack("main", (directory) => {
    for (const name of ["bin", "lib", "README.md"]) {
      cpSync(join(product.source, name), join(directory, name), { recursive: true });
    }
    // Both packages look for their executables in the same way.
    cpSync(join(here, "platforms.json"), join(directory, "platforms.json"));
    cpSync(join(here, "lib", "platform.js"), join(directory, "lib", "platform.js"));
    const optionalDependencies = Object.fromEntries(all.map((one) => [packageOf(one), version]));
    return { ...main, files: [...main.files, "LICENSE-*"], optionalDependencies };
  });
} finally {
  rmSync(staging, { recursive: true });
}

/** The licences of what is linked into the executable. */
function notices() {
  const ask = ["xtask", "notices", product.crate, "--target", platform.target];
  const told = spawnSync("cargo", ask, { cwd: root, encoding: "utf8", maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "inherit"] });
  if (told.error) throw told.error;
  if (told.status !== 0) throw new Error(`cargo ${ask.join(" ")} ended with ${told.status}`);
  return told.stdout;
}

/** Packs what `fill` puts into a directory, with the package.json that it returns, and the licences. */
function pack(name, fill) {
  const directory = join(staging, name);
  mkdirSync(directory);
  writeFileSync(join(directory, "package.json"), `${JSON.stringify(fill(directory), null, 2)}\n`);
  for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) {
    copyFileSync(join(root, licence), join(directory, licence));
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
