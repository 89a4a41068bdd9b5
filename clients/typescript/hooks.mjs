// Functions of the host that run at events.

import assert from "node:assert/strict";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { content, only, succeeded, toolResults } from "./rig.mjs";

const TOUCH = '%tool Bash {"command": "touch made.txt"}\n%say done';

/** PreToolUse denies one tool's calls; its matcher leaves the others alone. */
export async function hookPreToolUseDeny(rig) {
  const seen = [];
  const guard = async (input, toolUseId) => {
    seen.push([input.hook_event_name, input.tool_name, toolUseId]);
    const decision = { permissionDecision: "deny", permissionDecisionReason: "no shell here" };
    return { hookSpecificOutput: { hookEventName: "PreToolUse", ...decision } };
  };
  const file = join(rig.project, "x.txt");
  writeFileSync(file, "hello");
  await rig.chat({ hooks: { PreToolUse: [{ matcher: "Bash", hooks: [guard] }] } }, async (chat) => {
    const messages = await chat.turn(`%tool Read ${JSON.stringify({ file_path: file })}\n${TOUCH}`);
    succeeded(messages, "done");
    const [read, refused] = toolResults(messages);
    assert(!read.is_error && content(read).includes("hello"), content(read));
    assert(refused.is_error && content(refused).includes("no shell here"), content(refused));
    assert.deepEqual(seen, [["PreToolUse", "Bash", refused.tool_use_id]]);
  });
  assert(!existsSync(join(rig.project, "made.txt")), "the command did not run");
}

/** PreToolUse allows a call, and changes its input; nobody else is asked. */
export async function hookPreToolUseAllow(rig) {
  const allow = async (input) => ({
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: "allow",
      updatedInput: { ...input.tool_input, command: "touch other.txt" },
    },
  });
  await rig.chat({ hooks: { PreToolUse: [{ hooks: [allow] }] } }, async (chat) => {
    succeeded(await chat.turn(TOUCH), "done");
  });
  assert.deepEqual(readdirSync(rig.project), ["other.txt"]);
  assert.deepEqual((await rig.process()).wrote("control_request/can_use_tool"), []);
}

/** PostToolUse sees the tool's response. */
export async function hookPostToolUse(rig) {
  const seen = [];
  const after = async (input) => {
    seen.push([input.hook_event_name, input.tool_input.command, input.tool_response.stdout]);
    return { hookSpecificOutput: { hookEventName: "PostToolUse", additionalContext: "seen" } };
  };
  const options = { hooks: { PostToolUse: [{ matcher: "Bash", hooks: [after] }] }, allowedTools: ["Bash"] };
  await rig.chat(options, async (chat) => {
    succeeded(await chat.turn('%tool Bash {"command": "echo hello"}\n%say done'), "done");
  });
  assert.deepEqual(seen, [["PostToolUse", "echo hello", "hello"]]);
}

/** UserPromptSubmit sees each prompt and can refuse it. */
export async function hookUserPromptSubmit(rig) {
  const seen = [];
  const submit = async (input) => {
    seen.push(input.prompt);
    return input.prompt.includes("secret") ? { decision: "block", reason: "that is secret" } : {};
  };
  await rig.chat({ hooks: { UserPromptSubmit: [{ hooks: [submit] }] } }, async (chat) => {
    succeeded(await chat.turn("%say fine"), "fine");
    const refused = only(await chat.turn("%say secret"), "result");
    assert.match(refused.result, /that is secret/);
    assert.equal(refused.num_turns, 0);
  });
  assert.deepEqual(seen, ["%say fine", "%say secret"]);
}

/** Stop keeps the turn going once. */
export async function hookStop(rig) {
  const seen = [];
  const stop = async (input) => {
    seen.push(input.stop_hook_active);
    return input.stop_hook_active ? {} : { decision: "block", reason: "one more thing" };
  };
  await rig.chat({ hooks: { Stop: [{ hooks: [stop] }] } }, async (chat) => {
    succeeded(await chat.turn("%say first\n%say second"), "second");
  });
  assert.deepEqual(seen, [false, true]);
}
