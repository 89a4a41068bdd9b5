// What the host asks of a running CLI.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";

import { content, kindOf, of, only, succeeded, text, toolResults } from "./rig.mjs";
import { desk } from "./tools.mjs";

/** An interrupt ends the turn while the model speaks; the session goes on. */
export async function interrupt(rig) {
  await rig.chat({ includePartialMessages: true }, async (chat) => {
    const delta = "stream_event/content_block_delta";
    const messages = await chat.turn(`%slow 50 chunk=1\n%say ${"a long story ".repeat(50)}`, async (message, seen) => {
      if (kindOf(message) === delta && of(seen, delta).length === 1) {
        assert.deepEqual((await chat.query.interrupt()).still_queued, []);
      }
    });
    const end = only(messages, "result");
    assert.deepEqual([end.subtype, end.terminal_reason], ["error_during_execution", "aborted_streaming"]);
    succeeded(await chat.turn("%say again"), "again");
  });
  assert.equal((await rig.process()).read("control_request/interrupt").length, 1);
}

/** An interrupt ends a command that runs. */
export async function interruptTool(rig) {
  await rig.chat({ allowedTools: ["Bash"] }, async (chat) => {
    const messages = await chat.turn('%tool Bash {"command": "sleep 20"}\n%say never', async (message) => {
      if (message.type === "assistant") await chat.query.interrupt();
    });
    assert.equal(only(messages, "result").terminal_reason, "aborted_tools");
    succeeded(await chat.turn("%say again"), "again");
  });
}

/** The model changes between turns, and back to the default. */
export async function setModel(rig) {
  await rig.chat({ model: "claude-sonnet-4-5" }, async (chat) => {
    const before = await chat.turn("%say one");
    await chat.query.setModel("claude-opus-4-5");
    const after = await chat.turn("%say two");
    await chat.query.setModel();
    const back = await chat.turn("%say three");
    const models = [before, after, back].map((messages) => only(messages, "system/init").model);
    assert(models[0].startsWith("claude-sonnet-4-5") && models[1].startsWith("claude-opus-4-5"), `${models}`);
    assert.notEqual(models[2], models[1]);
    assert.equal(only(after, "assistant").message.model, models[1]);
  });
  const requests = (await rig.process()).read("control_request/set_model");
  assert.deepEqual(requests.map((frame) => frame.request.model), ["claude-opus-4-5", undefined]);
}

/** A mode that is set at run time decides about the calls that follow. */
export async function setPermissionMode(rig) {
  const asked = [];
  const canUseTool = async (name, input) => {
    asked.push(input.file_path);
    return { behavior: "allow", updatedInput: input };
  };
  const write = (path) => `%tool Write ${JSON.stringify({ file_path: path, content: "x" })}\n%say done`;
  const [first, second] = ["a.txt", "b.txt"].map((name) => join(rig.project, name));
  await rig.chat({ canUseTool }, async (chat) => {
    succeeded(await chat.turn(write(first)), "done");
    await chat.query.setPermissionMode("acceptEdits");
    const messages = await chat.turn(write(second));
    succeeded(messages, "done");
    assert.equal(only(messages, "system/init").permissionMode, "acceptEdits");
  });
  assert.deepEqual(asked, [first]);
  assert(existsSync(second), "the second file was written");
}

/** What initialize answered, and how full the context is. */
export async function serverInfo(rig) {
  await rig.chat({}, async (chat) => {
    assert((await chat.query.supportedCommands()).length > 0, "commands");
    assert((await chat.query.supportedModels()).length > 0, "models");
    succeeded(await chat.turn("%say one"), "one");
    const usage = await chat.query.getContextUsage();
    assert(usage.totalTokens > 0 && usage.maxTokens > usage.totalTokens, "context usage");
  });
}

/** A command in the background: its start, its end, and the turn that it wakes. */
export async function backgroundTask(rig) {
  await rig.chat({ allowedTools: ["Bash"] }, async (chat) => {
    const input = { command: "sleep 0.2; echo over", run_in_background: true };
    succeeded(await chat.turn(`%tool Bash ${JSON.stringify(input)}\n%say started\n%say woken`), "started");
    const messages = await chat.collect();
    assert.equal(succeeded(messages, "woken").origin.kind, "task-notification");
    only(messages, "system/task_notification");
  });
}

/** A subagent's messages name the call that started it, and its report is the call's result. */
export async function subagent(rig) {
  const call = { description: "look", prompt: "%say from below", subagent_type: "helper", run_in_background: false };
  const agents = { helper: { description: "Helps", prompt: "Help." } };
  await rig.chat({ agents, forwardSubagentText: true }, async (chat) => {
    const messages = await chat.turn(`%tool Agent ${JSON.stringify(call)}\n%say done`);
    succeeded(messages, "done");
    const below = of(messages, "assistant").filter((message) => message.parent_tool_use_id);
    assert.equal(text(below), "from below");
    const report = toolResults(messages).find((block) => block.tool_use_id === below[0].parent_tool_use_id);
    assert.match(content(report), /from below/);
  });
}

/** What else there is to ask and to change. */
export async function controlRequests(rig) {
  const command = { command: "sleep 30", run_in_background: true };
  const { allowedTools, ...servers } = desk();
  await rig.chat({ ...servers, allowedTools: [...allowedTools, "Bash"] }, async (chat) => {
    const { query } = chat;
    await query.toggleMcpServer("desk", false);
    await query.toggleMcpServer("desk", true);
    // Servers of the host are not the CLI's to reconnect.
    await assert.rejects(query.reconnectMcpServer("desk"), /SDK servers/);
    await query.setMaxThinkingTokens(4000);
    await query.applyFlagSettings({ model: "claude-sonnet-4-5" });
    const messages = await chat.turn(`%tool Bash ${JSON.stringify(command)}\n%say started`);
    succeeded(messages, "started");
    assert.match(only(messages, "system/init").model, /^claude-sonnet-4-5/);
    await query.stopTask(only(messages, "system/task_started").task_id);
    assert.deepEqual((await query.mcpServerStatus()).map(({ status }) => status), ["connected"]);
    assert((await query.accountInfo()).apiKeySource, "account");
    assert((await query.supportedAgents()).length > 0, "agents");
    assert((await query.initializationResult()).output_style, "initialization");
    assert.deepEqual((await query.setMcpServers({})).errors, {});
  });
  const process = await rig.process();
  assert.equal(process.wrote("control_response/error").length, 1);
  for (const subtype of ["mcp_toggle", "mcp_reconnect", "apply_flag_settings", "stop_task", "mcp_set_servers"]) {
    assert(process.read(`control_request/${subtype}`).length > 0, `${subtype} was asked`);
  }
}

/** Several sessions at once in one program. */
export async function concurrentClients(rig) {
  const talk = async (number) => {
    let session;
    await rig.chat({}, async (chat) => {
      session = succeeded(await chat.turn(`%say ${number}`), String(number)).session_id;
    });
    return session;
  };
  const sessions = await Promise.all([0, 1, 2, 3].map(talk));
  assert.equal(new Set(sessions).size, 4);
  await rig.processes(4);
}
