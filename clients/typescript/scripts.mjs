// Scripts from files, which judge the client.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";

import { content, only, succeeded, toolResults } from "./rig.mjs";
import { desk } from "./tools.mjs";

/** A script that asks for a permission, and is content with the client. */
export async function scriptFile(rig) {
  const canUseTool = async (name, input) => ({ behavior: "allow", updatedInput: input });
  await rig.chat({ env: rig.script("tidy.yaml"), canUseTool }, async (chat) => {
    succeeded(await chat.turn("please tidy up"), "Done.");
    succeeded(await chat.turn("thank you"), "You are welcome.");
  });
  assert.deepEqual(await rig.flaws(), []);
  assert(!existsSync(join(rig.project, "old.log")), "the log is gone");
}

/** A script that says what it did not like: a prompt that it does not know, and what did not happen. */
export async function scriptDiscontent(rig) {
  const env = rig.script("tidy.yaml");
  const talk = rig.chat({ env, stderr: () => {} }, async (chat) => {
    const end = only(await chat.turn("please clean up"), "result");
    assert(end.is_error && end.result.includes("no rule"), end.result);
  });
  // Its exit code says so, too.
  await assert.rejects(talk, /exited with code 97|no rule/);
  const flaws = await rig.flaws();
  assert(flaws.some((flaw) => flaw.includes("please clean up")), `${flaws}`);
  assert(flaws.some((flaw) => flaw.includes("Bash")), `${flaws}`);
}

/** A script that calls a tool of the host, asks its user and works in the background. */
export async function scriptNight(rig) {
  const asked = [];
  const canUseTool = async (name, input) => {
    asked.push(name);
    const answers = Object.fromEntries(input.questions.map(({ question }) => [question, "Yes"]));
    return { behavior: "allow", updatedInput: { ...input, answers } };
  };
  const { allowedTools, ...servers } = desk();
  const options = { env: rig.script("night.yaml"), ...servers, allowedTools: [...allowedTools, "Bash"], canUseTool };
  await rig.chat(options, async (chat) => {
    const messages = await chat.turn("good night");
    succeeded(messages, "Good night.");
    const said = toolResults(messages).map(content);
    assert(said[0] === "5" && said[1].includes("Yes"), `${said}`);
    succeeded(await chat.collect(), "It is built.");
  });
  assert.deepEqual(asked, ["AskUserQuestion"]);
  assert.deepEqual(await rig.flaws(), []);
}
