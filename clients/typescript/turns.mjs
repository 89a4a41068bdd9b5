// Prompts and answers.

import assert from "node:assert/strict";

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
