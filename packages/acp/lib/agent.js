// Where the agent is, and the CLI that came with it.

import { createRequire } from "node:module";

import { executable, installed, platforms } from "./platform.js";

/** The packages with an agent that may run on this machine. */
const candidates = () => platforms().map(({ name }) => ({ agent: `@outrigger/acp-${name}`, cli: `@anthropic-ai/claude-code-${name}` }));

/** The path of the agent's executable. */
export function agent() {
  const packages = candidates();
  for (const one of packages) {
    const path = installed(one.agent, executable("outrigger-acp"));
    if (path) return path;
  }
  if (packages.length === 0) {
    throw new Error(
      `there is no package for ${process.platform} on ${process.arch}; build the agent with \`cargo install outrigger-acp\``,
    );
  }
  const names = packages.map((one) => one.agent).join(" or ");
  throw new Error(`the package ${names} is missing; it is an optional dependency: install again without \`--omit=optional\``);
}

/** This environment, with the CLI that was installed with the agent, unless the environment names another one. */
export function withCli(env) {
  if (env.CLAUDE_CODE_EXECUTABLE) return env;
  for (const one of candidates()) {
    const manifest = installed(one.agent, "package.json");
    // The CLI is a dependency of the package of the platform, so it is found from there.
    const path = manifest && installed(one.cli, executable("claude"), createRequire(manifest));
    if (path) return { ...env, CLAUDE_CODE_EXECUTABLE: path };
  }
  return env;
}
