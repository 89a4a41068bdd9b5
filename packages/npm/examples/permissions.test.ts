import { query, type CanUseTool } from "@anthropic-ai/claude-agent-sdk";
import { test } from "outrigger-sim/vitest";
import { expect } from "vitest";

const onlyLogs: CanUseTool = async (tool, input) =>
  tool === "Bash" && String(input.command).endsWith(".log")
    ? { behavior: "allow", updatedInput: input }
    : { behavior: "deny", message: "only logs may be removed" };

test("only logs are removed", async ({ claude }) => {
  const sim = claude("clean-up.yaml");

  for await (const _ of query({ prompt: "Please clean up.", options: { ...sim.options, canUseTool: onlyLogs } })) {
  }

  const trace = await sim.trace();
  trace.assertPermission("Bash", "allowed", { command: "rm build.log" });
  const denied = trace.assertPermission("Bash", "denied");
  expect(denied.reply?.message).toBe("only logs may be removed");
});
