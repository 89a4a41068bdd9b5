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

test("program fails for an expectation", async ({ claude }) => {
  await ask("hello", claude("{prompts: [{steps: [{say: hi}]}], expect: {tools: [Bash]}}"));
});

test("program fails", async ({ claude }) => {
  await ask("good morning", claude("{prompts: [{prompt: good night, steps: [{say: hi}]}]}"));
});

test("not started", async ({ claude }) => {
  claude();
});

test("killed", async ({ claude }) => {
  const sim = claude("{prompts: [{steps: [{fault: {fault: kill, signal: 9}}, {say: hi}]}]}");
  await ask("hello", sim).catch(() => {});
});

test("script is wrong", async ({ claude }) => {
  await ask("hello", claude("prompts:\n  - {prompt: a, stepz: []}\n"));
});

test("script is missing", async ({ claude }) => {
  claude("nowhere.yaml");
});

test("assertion", async ({ claude }) => {
  const sim = claude({ prompts: [{ steps: [{ call: { tool: "Read", input: { file_path: "a.txt" } } }] }] });
  await ask("go", sim);
  (await sim.trace()).assertTool("Read", { input: { file_path: "b.txt" } });
});
