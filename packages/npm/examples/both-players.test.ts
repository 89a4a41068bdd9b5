import { readFileSync } from "node:fs";
import { join } from "node:path";

import { query } from "@anthropic-ai/claude-agent-sdk";
import { test } from "outrigger-sim/vitest";
import { expect } from "vitest";

const script = `
prompts:
  - prompt: {contains: notes}
    steps:
      - call: {tool: Write, input: {file_path: notes.md, content: buy milk}}
      - say: It is written.
`;

for (const real of [false, true]) {
  test(`notes are written, with the ${real ? "real" : "simulated"} CLI`, async ({ claude }) => {
    const sim = claude(script, { real });

    const options = { ...sim.options, permissionMode: "acceptEdits" } as const;
    for await (const message of query({ prompt: "Write my notes.", options })) {
      if (message.type === "result") expect(message).toHaveProperty("result", "It is written.");
    }

    expect(readFileSync(join(sim.cwd, "notes.md"), "utf8")).toBe("buy milk");
    (await sim.trace()).assertTool("Write", { times: 1, isError: false });
  });
}
