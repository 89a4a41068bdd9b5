import { createSdkMcpServer, query, tool, type HookCallback } from "@anthropic-ai/claude-agent-sdk";
import { test } from "outrigger-sim/vitest";
import { expect } from "vitest";
import { z } from "zod";

const find = tool("find", "Where an order is", { number: z.number() }, async ({ number }) => ({
  content: [{ type: "text", text: `order ${number} is on its way` }],
}));

const noSecrets: HookCallback = async (input) => {
  if (input.hook_event_name !== "PreToolUse" || !JSON.stringify(input.tool_input).includes(".env")) return {};
  return {
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: "deny",
      permissionDecisionReason: "secrets stay here",
    },
  };
};

test("a hook and a tool of the program", async ({ claude }) => {
  const sim = claude({
    files: { ".env": "KEY=1" },
    prompts: [
      {
        prompt: "Where is order 7?",
        steps: [
          { call: { tool: "Read", input: { file_path: ".env" } } },
          { assert: { hook: { hookSpecificOutput: { permissionDecision: "deny" } } } },
          { call: { tool: "mcp__shop__find", input: { number: 7 } } },
          { assert: { result: "order 7 is on its way" } },
          { say: "It is on its way." },
        ],
      },
    ],
  });
  const options = {
    ...sim.options,
    hooks: { PreToolUse: [{ matcher: "Read", hooks: [noSecrets] }] },
    mcpServers: { shop: createSdkMcpServer({ name: "shop", tools: [find] }) },
    allowedTools: ["mcp__shop__find"],
  };

  for await (const _ of query({ prompt: "Where is order 7?", options })) {
  }

  const trace = await sim.trace();
  const [hook] = trace.assertHook("PreToolUse", { times: 1 });
  expect(hook?.input.tool_name).toBe("Read");
  trace.assertTool("Read", { isError: true });
  trace.assertTool("mcp__shop__find", { input: { number: 7 }, isError: false });
});
