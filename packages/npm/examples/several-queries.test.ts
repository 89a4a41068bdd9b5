import { query, type Options } from "@anthropic-ai/claude-agent-sdk";
import { test } from "outrigger-sim/vitest";
import { expect } from "vitest";

// Each `query()` is a process, and all processes of a simulation play the script together.
const script = `
prompts:
  - {prompt: {contains: title}, steps: [{say: Milk}]}
  - {prompt: {contains: summary}, steps: [{say: You want milk.}]}
  - {prompt: {contains: tags}, steps: [{say: "shopping, food"}]}
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
  expect((await sim.trace()).processes).toHaveLength(3);
});
