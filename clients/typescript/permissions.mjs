// Who may do what.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { content, only, succeeded, toolResults } from "./rig.mjs";

const TOUCH = '%tool Bash {"command": "touch made.txt", "description": "make a file"}\n%say done';

/** A call that is allowed runs, with the input that was asked about. */
export async function permissionAllow(rig) {
  const asked = [];
  const canUseTool = async (name, input, { toolUseID }) => {
    asked.push([name, input.command, toolUseID]);
    return { behavior: "allow", updatedInput: input };
  };
  await rig.chat({ canUseTool }, async (chat) => {
    const messages = await chat.turn(TOUCH);
    assert.deepEqual(succeeded(messages, "done").permission_denials, []);
    assert.deepEqual(asked, [["Bash", "touch made.txt", toolResults(messages)[0].tool_use_id]]);
  });
  assert(existsSync(join(rig.project, "made.txt")), "the command ran");
  const process = await rig.process();
  assert(process.argv.join("=").includes("--permission-prompt-tool=stdio"), "the flag is passed");
  assert.equal(process.read("control_response/success")[0].response.response.behavior, "allow");
}

/** A call that is denied does not run; the model hears why. */
export async function permissionDeny(rig) {
  const canUseTool = async () => ({ behavior: "deny", message: "not on a Sunday" });
  await rig.chat({ canUseTool }, async (chat) => {
    const messages = await chat.turn(TOUCH);
    const end = succeeded(messages, "done");
    assert.deepEqual(end.permission_denials.map((denial) => denial.tool_name), ["Bash"]);
    const [refusal] = toolResults(messages);
    assert(refusal.is_error);
    assert.match(content(refusal), /not on a Sunday/);
  });
  assert(!existsSync(join(rig.project, "made.txt")), "the command did not run");
}

/** A denial with `interrupt` ends the turn. */
export async function permissionDenyInterrupt(rig) {
  const canUseTool = async () => ({ behavior: "deny", message: "stop", interrupt: true });
  await rig.chat({ canUseTool }, async (chat) => {
    const end = only(await chat.turn(TOUCH), "result");
    assert.deepEqual([end.subtype, end.is_error], ["error_during_execution", true]);
    succeeded(await chat.turn("%say again"), "again");
  });
  assert(!existsSync(join(rig.project, "made.txt")), "the command did not run");
}

/** What runs is the input that came with the permission. */
export async function permissionUpdatedInput(rig) {
  const canUseTool = async (name, input) => ({
    behavior: "allow",
    updatedInput: { ...input, command: "touch other.txt" },
  });
  await rig.chat({ canUseTool }, async (chat) => succeeded(await chat.turn(TOUCH), "done"));
  assert.deepEqual(readdirSync(rig.project), ["other.txt"]);
}

/** A suggestion that is taken up keeps the CLI from asking again. */
export async function permissionSuggestions(rig) {
  const suggested = [];
  const canUseTool = async (name, input, { suggestions }) => {
    suggested.push(suggestions);
    return { behavior: "allow", updatedInput: input, updatedPermissions: suggestions };
  };
  const write = (name) => `%tool Write ${JSON.stringify({ file_path: join(rig.project, name), content: name })}`;
  await rig.chat({ canUseTool }, async (chat) => {
    succeeded(await chat.turn(`${write("a.txt")}\n${write("b.txt")}\n%say done`), "done");
  });
  assert.equal(suggested.length, 1, "questions");
  assert(suggested[0].some((update) => update.type === "setMode"), JSON.stringify(suggested));
  assert.equal(readFileSync(join(rig.project, "b.txt"), "utf8"), "b.txt");
  const process = await rig.process();
  assert.equal(process.wrote("control_request/can_use_tool").length, 1);
  const answer = process.read("control_response/success")[0].response.response;
  assert.equal(answer.updatedPermissions[0].type, "setMode");
}

/** A tool that was allowed beforehand is not asked about, one that was disallowed is not there. */
export async function allowedTools(rig) {
  const asked = [];
  const canUseTool = async (name, input) => {
    asked.push(name);
    return { behavior: "allow", updatedInput: input };
  };
  const options = { allowedTools: ["Bash(touch:*)"], disallowedTools: ["WebFetch"], canUseTool };
  await rig.chat(options, async (chat) => {
    const messages = await chat.turn(TOUCH);
    succeeded(messages, "done");
    const { tools } = only(messages, "system/init");
    assert(!tools.includes("WebFetch") && tools.includes("Bash"));
  });
  assert.deepEqual(asked, []);
  assert(existsSync(join(rig.project, "made.txt")), "the command ran");
}
