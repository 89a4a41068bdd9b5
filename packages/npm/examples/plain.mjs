// With node's own test runner.
import assert from "node:assert/strict";
import { test } from "node:test";

import { query } from "@anthropic-ai/claude-agent-sdk";
import { simulate } from "outrigger-sim";

test("a greeting", async (t) => {
  const sim = simulate({ prompts: [{ prompt: "Say hello.", steps: [{ say: "hello" }] }] });
  t.after(() => sim.end());

  const messages = [];
  for await (const message of query({ prompt: "Say hello.", options: sim.options })) messages.push(message);

  assert.equal(messages.at(-1).result, "hello");
  (await sim.trace()).assertPrompts("Say hello.");
});
