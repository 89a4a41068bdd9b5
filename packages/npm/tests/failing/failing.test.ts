// Tests that have to fail: kit.mjs looks at what is reported of them.

import { query } from "@anthropic-ai/claude-agent-sdk";
import type { Simulation } from "outrigger-sim";
import { test } from "outrigger-sim/vitest";

async function ask(prompt: string, sim: Simulation) {
  for await (const _ of query({ prompt, options: sim.options })) {
  }
}

test("expectation", async ({ claude }) => {
  const sim = claude("{prompts: [{steps: [{say: hi}]}], expect: {tools: [Bash]}}");
  // What a program does that goes on when its agent fails.
  await ask("hello", sim).catch(() => {});
});

test("program fails", async ({ claude }) => {
  await ask("good morning", claude("{prompts: [{prompt: good night, steps: [{say: hi}]}]}"));
});

test("not started", async ({ claude }) => {
  claude();
});

test("killed", async ({ claude }) => {
  // How a process of the real CLI ended is not known.
  const sim = claude("{prompts: [{steps: [{wait: interrupt}]}]}", { real: false, patience: 0 });
  const asked = ask("hello", sim).catch(() => {});
  let trace = await sim.trace();
  while (trace.ofKind("system/init").length === 0) trace = await sim.trace();
  for (const { pid } of trace.processes) process.kill(pid, "SIGKILL");
  await asked;
});

test("script is wrong", async ({ claude }) => {
  await ask("hello", claude("prompts:\n  - {prompt: a, stepz: []}\n"));
});

test("only the simulated CLI plays it", async ({ claude }) => {
  claude("prompts:\n  - steps: [{cost: 1}]\n", { real: true });
});

test("script is missing", async ({ claude }) => {
  claude("nowhere.yaml");
});

test("assertion", async ({ claude }) => {
  const sim = claude({ prompts: [{ steps: [{ call: { tool: "Read", input: { file_path: "a.txt" } } }] }] });
  await ask("go", sim);
  (await sim.trace()).assertTool("Read", { input: { file_path: "b.txt" } });
});
