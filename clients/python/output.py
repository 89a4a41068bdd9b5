"""What comes out: structured output and partial messages."""

from claude_agent_sdk import StreamEvent

from rig import equal, holds, of, result, succeeded, text, turn


async def partial_messages(rig):
    """Deltas come before the message, add up to it, and keep the order of the API."""
    async with rig.client(include_partial_messages=True) as client:
        messages = await turn(client, "%slow 1 chunk=2\n%say hello there")
    succeeded(messages, "hello there")
    events = [message.event for message in of(messages, StreamEvent)]
    deltas = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    holds(len(deltas) > 3, f"deltas: {deltas}")
    equal("".join(deltas), text(messages), "the deltas' text")
    kinds = list(dict.fromkeys(event["type"] for event in events))
    expected = ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"]
    equal(kinds, expected, "events")


async def structured_output(rig):
    """An answer in the form of a schema."""
    schema = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
    output = {"type": "json_schema", "schema": schema}
    async with rig.client(output_format=output) as client:
        messages = await turn(client, '%tool StructuredOutput {"answer": 42}\n%say done')
    end = result(messages)
    equal((end.subtype, end.is_error, end.structured_output), ("success", False, {"answer": 42}), "result")
    holds("--json-schema" in rig.process().argv, "the flag is passed")
