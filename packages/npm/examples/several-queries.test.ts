import { query, type Options } from "@anthropic-ai/claude-agent-sdk";
import { test } from "outrigger-sim/vitest";
import { expect } from "vitest";

// Each `query()` is a process, and each process plays the script from its beginning. So each rule may be used at any time, and
// no process has to use all of them.
const script = `
prompts:
  - {prompt: {contains: title}, anytime: true, steps: [{say: Milk}]}
  - {prompt: {contains: summary}, anytime: true, steps: [{say: You want milk.}]}
  - {prompt: {contains: tags}, anytime: true, steps: [{say: "shopping, food"}]}
expect: {every_rule_used: false}
`;

async function ask(prompt: string, options: Options) {
  for await (const message of query({ prompt, options })) {
    if (message.type === "result" && message.subtype === "success") return message.result;
  }
}

test("three questions", async ({ claude }) => {
  const sim = claude(script);

  const answers = [];
  for (const what of ["title", "summary", "list of tags"]) {
    answers.push(await ask(`Write a ${what}.`, sim.options));
  }

  expect(answers).toEqual(["Milk", "You want milk.", "shopping, food"]);
  const trace = await sim.trace();
  expect(trace.processes).toHaveLength(3);
  // What `every_rule_used` would have checked.
  trace.assertPrompts("Write a title.", "Write a summary.", "Write a list of tags.");
});
