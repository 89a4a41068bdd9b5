// Tools that run in the host: in-process MCP servers.

import assert from "node:assert/strict";

import { createSdkMcpServer, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

import { content, only, succeeded, toolResults } from "./rig.mjs";

const say = (text) => ({ content: [{ type: "text", text }] });

/** A server of the host with tools that work, fail and throw. */
export function desk() {
  const tools = [
    tool("add", "Adds two numbers", { a: z.number(), b: z.number() }, async ({ a, b }) => say(String(a + b))),
    tool("fail", "Fails", { why: z.string() }, async ({ why }) => ({ ...say(why), isError: true })),
    tool("explode", "Throws", {}, async () => {
      throw new Error("out of paper");
    }),
  ];
  const allowedTools = tools.map(({ name }) => `mcp__desk__${name}`);
  return { mcpServers: { desk: createSdkMcpServer({ name: "desk", tools }) }, allowedTools };
}

/** A tool of the host is listed, called through the bridge, and its answer reaches the model. `initialize` already has the list. */
export async function mcpCall(rig) {
  await rig.chat(desk(), async (chat) => {
    const messages = await chat.turn('%tool mcp__desk__add {"a": 2, "b": 3}\n%say done');
    succeeded(messages, "done");
    assert.deepEqual(toolResults(messages).map(content), ["5"]);
    const init = only(messages, "system/init");
    assert(init.tools.includes("mcp__desk__add"), "the tool is listed");
    assert.deepEqual(init.mcp_servers.map(({ name, status }) => [name, status]), [["desk", "connected"]]);
    assert.deepEqual((await chat.query.mcpServerStatus()).map(({ status }) => status), ["connected"]);
  });
  const requests = (await rig.process()).wrote("control_request/mcp_message");
  const methods = requests.map((frame) => frame.request.message.method);
  assert.deepEqual(methods, ["tools/call"]);
}

/** A tool's error and its exception are errors for the model, and the turn goes on. */
export async function mcpError(rig) {
  await rig.chat(desk(), async (chat) => {
    const prompt = '%tool mcp__desk__fail {"why": "too late"}\n%tool mcp__desk__explode {}\n%say done';
    const messages = await chat.turn(prompt);
    succeeded(messages, "done");
    const [failed, exploded] = toolResults(messages);
    assert(failed.is_error && content(failed).includes("too late"), content(failed));
    assert(exploded.is_error && content(exploded).includes("out of paper"), content(exploded));
  });
}
