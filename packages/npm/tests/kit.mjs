// What the helpers do, with the packages installed.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { query } from "@anthropic-ai/claude-agent-sdk";
import { Discontent, Trace, binary, simulate } from "outrigger-sim";

const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);

/** What has to be in the message of each failing test. */
const FAILING = {
  expectation: [/^Discontent: the script is not content with the program:\n.*script\.yaml.*Bash/, /-> user hello/],
  "program fails": [/no rule of the script is for the prompt "good morning"/],
  "not started": [/no process of the CLI was started.*pathToClaudeCodeExecutable/],
  killed: [/process \d+ was killed/],
  "script is wrong": [/^CannotPlay: .*script\.yaml:2:.*stepz/],
  "only the simulated CLI plays it": [/^CannotPlay: .*script\.yaml:2:.*the real CLI cannot play `cost`/],
  "script is missing": [/there is no script .*nowhere\.yaml/],
  assertion: [/expected a call of Read with \{ file_path: 'b\.txt' \}, but there was:\n.*a\.txt/],
};

test("what has to fail fails and says why", () => {
  const place = mkdtempSync(join(tmpdir(), "kit-"));
  const output = join(place, "report.json");
  const vitest = join(dirname(require.resolve("vitest/package.json")), "vitest.mjs");
  const flags = ["run", "--dir", join(here, "failing"), "--reporter=json", `--outputFile=${output}`];
  const ran = spawnSync(process.execPath, [vitest, ...flags], { cwd: here, encoding: "utf8" });
  assert.equal(ran.status, 1, ran.stdout + ran.stderr);
  const [file] = JSON.parse(readFileSync(output, "utf8")).testResults;
  rmSync(place, { recursive: true });
  assert.deepEqual(file.assertionResults.map(({ title }) => title), Object.keys(FAILING));
  for (const { title, status, failureMessages } of file.assertionResults) {
    assert.equal(status, "failed", title);
    for (const pattern of FAILING[title]) assert.match(failureMessages.join("\n"), pattern, title);
  }
});

test("nothing of the user is touched, and nothing is left", async (t) => {
  const home = mkdtempSync(join(tmpdir(), "kit-"));
  const before = { ...process.env };
  t.after(() => {
    process.env = before;
    rmSync(home, { recursive: true });
  });
  Object.assign(process.env, { HOME: home, CLAUDE_CONFIG_DIR: home, ANTHROPIC_API_KEY: "secret", OUTRIGGER_SIM_SCRIPT: "/none.yaml" });
  const sim = simulate();
  assert(!JSON.stringify(sim.env).includes("secret"));
  const messages = [];
  for await (const message of query({ prompt: "%say hi", options: sim.options })) messages.push(message);
  assert.equal(messages.at(-1).result, "hi");
  const [init] = (await sim.trace()).ofKind("system/init");
  assert.equal(init.data.cwd, sim.cwd);
  assert(existsSync(join(sim.home, ".claude", "projects")));
  assert.deepEqual(readdirSync(home), []);
  await sim.end();
  assert(!existsSync(sim.place));
});

test("a gate holds a reply back", async (t) => {
  const sim = simulate("prompts: [{steps: [{wait: {gate: go}}, {say: gone}]}]");
  t.after(() => sim.end());
  const asked = (async () => {
    for await (const message of query({ prompt: "wait", options: sim.options })) {
      if (message.type === "result") return message.result;
    }
  })();
  for (const until = Date.now() + 20_000; !sim.gateReached("go"); await sleep(5)) assert(Date.now() < until);
  sim.openGate("go");
  assert.equal(await asked, "gone");
});

test("a process that its program leaves behind is told and ended", async () => {
  const sim = simulate(undefined, { patience: 50 });
  const flags = ["--output-format=stream-json", "--verbose", "--input-format=stream-json"];
  const child = spawn(sim.path, flags, { env: sim.env, cwd: sim.cwd });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  child.stdin.write('{"type":"user","message":{"role":"user","content":"%say hi"}}\n');
  await new Promise((resolve) => child.stdout.once("data", resolve));
  await assert.rejects(sim.end(), (error) => {
    assert(error instanceof Discontent);
    assert.match(error.message, new RegExp(`process ${child.pid} was still running at the end`));
    return true;
  });
  await ended;
});

test("a run says which CLI plays", async (t) => {
  const real = process.env.OUTRIGGER_SIM_REAL === "1";
  const sim = simulate();
  t.after(() => sim.end());
  assert.equal(sim.real, real);
  // Nothing but the path is given, and the home is that of the simulation all the same.
  const messages = [];
  for await (const message of query({ prompt: "%say hi", options: { pathToClaudeCodeExecutable: sim.path } })) messages.push(message);
  assert.equal(messages.at(-1).result, "hi");
  const [{ running, exitCode, arguments: given }] = (await sim.trace()).processes;
  // Only of the simulated CLI it is known how it ended.
  assert.deepEqual([running, exitCode], [false, real ? null : 0]);
  assert.equal(given[0], "--output-format");
  assert(existsSync(join(sim.home, ".claude", "projects")));

  const cli = join(mkdtempSync(join(tmpdir(), "named-")), "claude");
  t.after(() => rmSync(dirname(cli), { recursive: true }));
  writeFileSync(cli, "#!/bin/sh\necho the CLI that was named\n", { mode: 0o755 });
  const named = simulate(undefined, { real: cli });
  assert.equal(spawnSync(named.path, { encoding: "utf8" }).stdout, "the CLI that was named\n");
  await named.end();

  assert.throws(() => simulate(undefined, { real: "/nowhere/claude" }), /the CLI \/nowhere\/claude cannot be run/);
});

test("a program that ends without a word is told at once", { skip: !existsSync("/proc/self/stat") }, () => {
  process.env.OUTRIGGER_SIM = "/bin/true";
  const began = Date.now();
  assert.throws(() => simulate(), /^CannotPlay: \/bin\/true does not start/);
  assert(Date.now() - began < 20_000);
  delete process.env.OUTRIGGER_SIM;
});

test("only a reply that the CLI reads and understands decides", () => {
  const ask = { sender: "cli", kind: "control_request/can_use_tool", data: { request_id: "q", request: { tool_name: "Bash" } } };
  const reply = (response) => {
    const data = { type: "control_response", response: { subtype: "success", request_id: "q", response } };
    return { sender: "client", kind: "control_response/success", data };
  };
  const withdraws = { sender: "cli", kind: "control_cancel_request", data: { type: "control_cancel_request", request_id: "q" } };
  const [allow, deny] = [reply({ behavior: "allow" }), reply({ behavior: "deny", message: "no" })];
  for (const [outcome, ...frames] of [
    ["allowed", allow, deny],
    ["denied", deny, allow],
    ["allowed", reply({ behavior: "allow", updatedInput: { command: "ls" } }), withdraws],
    ["failed", withdraws, allow],
    ["failed", reply({ behavior: "allow", updatedInput: null })],
    ["failed", reply({ behavior: "allow", updatedInput: ["ls"] })],
    ["failed", reply({ behavior: "deny" })],
  ]) {
    const trace = new Trace([{ frames: [ask, ...frames] }], []);
    assert.equal(trace.permissionRequests[0].outcome, outcome, JSON.stringify(frames));
  }
});

test("a call has its result from the process that goes on with its session", () => {
  const frame = (kind, session_id, block) => {
    return { sender: "cli", kind, data: { type: kind, session_id, message: { content: [block] } } };
  };
  const call = (session) => frame("assistant", session, { type: "tool_use", id: "t", name: "Bash", input: {} });
  const result = (session, is_error) => frame("user", session, { type: "tool_result", tool_use_id: "t", content: "x", is_error });
  const [first, other, last] = [[call("a")], [call("b"), result("b", true)], [result("a", false)]].map((frames) => ({ frames }));
  const results = (...processes) => new Trace(processes, []).toolCalls.map(({ result, isError }) => [result, isError]);
  assert.deepEqual(results(first, other, last), [["x", false], ["x", true]]);
  assert.deepEqual(results(first, other), [[null, false], ["x", true]]);
});

test("the executable is that of the package for this machine", () => {
  const { version, optionalDependencies } = require("outrigger-sim/package.json");
  assert.equal(version, process.env.OUTRIGGER_VERSION);
  assert(Object.values(optionalDependencies).every((wanted) => wanted === version));
  assert(binary().includes(join("node_modules", "@outrigger", "sim-")), binary());
  process.env.OUTRIGGER_SIM = "/nowhere";
  assert.throws(binary, /OUTRIGGER_SIM names \/nowhere/);
  delete process.env.OUTRIGGER_SIM;
});

test("the executable can be run by npx", () => {
  const bin = join(dirname(require.resolve("outrigger-sim/package.json")), "bin", "outrigger-sim.js");
  const schema = spawnSync(process.execPath, [bin, "--schema"], { encoding: "utf8" });
  assert.equal(schema.status, 0, schema.stderr);
  assert(JSON.parse(schema.stdout).properties.prompts);
  assert.equal(spawnSync(process.execPath, [bin, "--check", "/nowhere.yaml"]).status, 98);
});
