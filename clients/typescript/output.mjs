// What comes out: structured output and partial messages.

import assert from "node:assert/strict";

import { of, only, succeeded, text } from "./rig.mjs";

/** Deltas come before the message, add up to it, and keep the order of the API. */
export async function partialMessages(rig) {
  await rig.chat({ includePartialMessages: true }, async (chat) => {
    const messages = await chat.turn("%slow 1 chunk=2\n%say hello there");
    succeeded(messages, "hello there");
    const events = of(messages, "stream_event").map((message) => message.event);
    const deltas = events.filter((event) => event.type === "content_block_delta").map((event) => event.delta.text);
    assert(deltas.length > 3, `${deltas}`);
    assert.equal(deltas.join(""), text(messages));
    assert.deepEqual(
      [...new Set(events.map((event) => event.type))],
      ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"],
    );
  });
}

/** An answer in the form of a schema. */
export async function structuredOutput(rig) {
  const schema = { type: "object", properties: { answer: { type: "integer" } }, required: ["answer"] };
  await rig.chat({ outputFormat: { type: "json_schema", schema } }, async (chat) => {
    const end = only(await chat.turn('%tool StructuredOutput {"answer": 42}\n%say done'), "result");
    assert.deepEqual([end.subtype, end.is_error, end.structured_output], ["success", false, { answer: 42 }]);
  });
  const process = await rig.process();
  const [initialize] = process.read("control_request/initialize");
  assert(process.argv.includes("--json-schema") || initialize.request.jsonSchema, "the schema is passed");
}
