#!/usr/bin/env node
// `npx outrigger-acp`: the agent itself, with the CLI that was installed with it.

import { spawn } from "node:child_process";

import { agent, withCli } from "../lib/agent.js";

let path;
try {
  path = agent();
} catch (error) {
  console.error(`outrigger-acp: ${error.message}`);
  process.exit(1);
}
const given = process.argv.slice(2);
const env = withCli(process.env);
if (process.execve && process.platform !== "win32") {
  // The agent takes the place of Node, which would hold more memory than the agent does.
  process.execve(path, [path, ...given], env);
}
const child = spawn(path, given, { stdio: "inherit", env });
// Ctrl-C reaches the agent by itself. It ends in its own time.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`outrigger-acp: cannot start ${path}: ${error.message}`);
  process.exitCode = 1;
});
child.on("exit", (status, signal) => {
  if (!signal) {
    process.exitCode = status;
    return;
  }
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
