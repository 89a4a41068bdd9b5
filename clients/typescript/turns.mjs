// Prompts and answers.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { of, only, succeeded, text } from "./rig.mjs";

/** `query` with a string: one turn, then the process ends by itself. */
export async function oneShot(rig) {
  const messages = await rig.ask("%say four");
  const end = succeeded(messages, "four");
  assert.equal(text(messages), "four");
  assert.equal(only(messages, "system/init").session_id, end.session_id);
  assert(end.num_turns === 1 && end.total_cost_usd > 0 && end.usage.output_tokens === 5);
  const process = await rig.process();
  assert.equal(process.read("control_request/initialize").length, 1);
  const prompts = process.read("user").flatMap((frame) => frame.message.content);
  assert.deepEqual(prompts.map((block) => block.text ?? block), ["%say four"]);
  assert.equal(process.exit.exit_code, 0);
}

/** Three turns of one session; cost adds up. */
export async function multiTurn(rig) {
  const ends = [];
  await rig.chat({}, async (chat) => {
    for (const word of ["one", "two", "three"]) ends.push(succeeded(await chat.turn(`%say ${word}`), word));
  });
  assert.equal(new Set(ends.map((end) => end.session_id)).size, 1);
  const costs = ends.map((end) => end.total_cost_usd);
  assert(costs[0] < costs[1] && costs[1] < costs[2], `the cost of the session grows: ${costs}`);
  const process = await rig.process();
  assert.equal(process.wrote("system/init").length, 3);
  assert.equal(process.wrote("result/success").length, 3);
}

/** Prompts that do not wait for each other are all answered. */
export async function promptStream(rig) {
  await rig.chat({}, async (chat) => {
    chat.send("%say first");
    chat.send("%say second");
    const messages = [];
    while (!text(messages).endsWith("second")) messages.push(...(await chat.collect()));
  });
  assert.equal((await rig.process()).read("user").length, 2);
}

/** Thinking and text are blocks of their own. */
export async function thinking(rig) {
  await rig.chat({}, async (chat) => {
    const messages = await chat.turn("%think hm\n%+say done");
    succeeded(messages, "done");
    const blocks = of(messages, "assistant").flatMap((message) => message.message.content);
    assert.deepEqual(
      blocks.filter((block) => block.type === "thinking").map((block) => block.thinking),
      ["hm"],
    );
  });
}

/** A limit on rounds ends the turn with an error result; the session goes on. */
export async function maxTurns(rig) {
  await rig.chat({ maxTurns: 1, allowedTools: ["Bash"] }, async (chat) => {
    const end = only(await chat.turn('%tool Bash {"command": "echo x"}\n%say never'), "result");
    assert.deepEqual([end.subtype, end.is_error, end.terminal_reason], ["error_max_turns", true, "max_turns"]);
    assert(end.errors.length > 0, "it says why");
    succeeded(await chat.turn("%say again"), "again");
  });
  assert((await rig.process()).argv.some((argument) => argument.startsWith("--max-turns")));
}

/** A failure of the API is a result with an error; the session goes on. */
export async function apiError(rig) {
  await rig.chat({}, async (chat) => {
    const end = only(await chat.turn('%error 400 n=9 msg="bad request"'), "result");
    assert.deepEqual([end.subtype, end.is_error, end.api_error_status], ["success", true, 400]);
    assert.match(end.result, /bad request/);
    succeeded(await chat.turn("%say again"), "again");
  });
}

/** A flag that the CLI does not know is refused; the SDK says that it could not start. */
export async function refusedFlag(rig) {
  await assert.rejects(rig.ask("%say no", { extraArgs: { "no-such-flag": null } }));
  const process = await rig.process();
  assert.equal(process.exit.exit_code, 1);
  assert.deepEqual(process.said, ["error: unknown option '--no-such-flag'"]);
}

/** The CLI takes every flag that the SDK makes of its options, and says that it plays no plugin. */
export async function everyOption(rig) {
  const plugin = join(rig.project, "plugin");
  mkdirSync(plugin);
  const options = {
    additionalDirectories: [plugin],
    agents: { helper: { description: "Helps", prompt: "Help.", tools: ["Read"], model: "haiku" } },
    allowDangerouslySkipPermissions: true,
    allowedTools: ["Bash(ls:*)"],
    betas: ["context-1m-2025-08-07"],
    canUseTool: async (name, input) => ({ behavior: "allow", updatedInput: input }),
    debugFile: join(rig.root, "debug.txt"),
    disallowedTools: ["WebFetch"],
    effort: "low",
    enableFileCheckpointing: true,
    // The superuser may skip permissions in a sandbox alone.
    env: { IS_SANDBOX: "1" },
    fallbackModel: "claude-haiku-4-5",
    forwardSubagentText: true,
    includeHookEvents: true,
    includePartialMessages: true,
    managedSettings: { permissions: { deny: ["WebSearch"] } },
    maxBudgetUsd: 5,
    maxTurns: 7,
    model: "claude-sonnet-4-5",
    outputFormat: { type: "json_schema", schema: { type: "object" } },
    permissionMode: "acceptEdits",
    permissionPrompts: "host",
    persistSession: false,
    plugins: [{ type: "local", path: plugin }],
    projectConfigRoot: rig.project,
    promptSuggestions: false,
    sessionId: "6f1ef1b2-6c0f-4d0c-9a6e-0d5cf57b3f52",
    settingSources: ["user", "project", "local"],
    settings: { permissions: { allow: ["Glob"] } },
    skills: ["tidy"],
    strictMcpConfig: true,
    systemPrompt: { type: "preset", preset: "claude_code", append: "Be brief." },
    taskBudget: { total: 20000 },
    thinking: { type: "enabled", budgetTokens: 4000, display: "summarized" },
    title: "Everything",
    tools: { type: "preset", preset: "claude_code" },
    verbatimPrompts: true,
  };
  const chat = rig.chat(options, (chat) => chat.turn("%say fine"));
  // The SDK throws what the last result of a process says that failed.
  await assert.rejects(chat, /a plugin is not simulated/);
  const { argv } = await rig.process();
  const given = argv.filter((argument) => argument.startsWith("--")).map((argument) => argument.split("=")[0]);
  const expected = `
    --add-dir --allow-dangerously-skip-permissions --allowedTools --betas --debug-file --disallowedTools
    --effort --fallback-model --include-hook-events --include-partial-messages --input-format --json-schema
    --managed-settings --max-budget-usd --max-thinking-tokens --max-turns --model --no-session-persistence
    --output-format --permission-mode --permission-prompt-tool --permission-prompts --plugin-dir
    --project-config-root --session-id --setting-sources --settings --strict-mcp-config --task-budget
    --thinking-display --tools --verbose
  `;
  assert.deepEqual(given.sort(), expected.trim().split(/\s+/));
}
