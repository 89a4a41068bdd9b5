import { query, type Options } from "@anthropic-ai/claude-agent-sdk";
import { test } from "outrigger-sim/vitest";
import { expect } from "vitest";

// The program under test.
async function summarize(options: Options): Promise<string> {
  for await (const message of query({ prompt: "Summarize the notes.", options })) {
    if (message.type === "result" && message.subtype === "success") return message.result;
  }
  return "";
}

const script = `
files: {notes.md: "buy milk"}
prompts:
  - prompt: {contains: Summarize}
    steps:
      - call: {tool: Read, input: {file_path: notes.md}}
      - say: You want milk.
expect:
  tools: [Read]
`;

test("a summary", async ({ claude }) => {
  const sim = claude(script);

  expect(await summarize(sim.options)).toBe("You want milk.");

  const trace = await sim.trace();
  trace.assertPrompts("Summarize the notes.");
  const [read] = trace.assertTool("Read", { times: 1, isError: false });
  expect(read?.result).toContain("buy milk");
});
