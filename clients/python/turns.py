"""Prompts and answers."""

import json

from claude_agent_sdk import AgentDefinition, AssistantMessage, ClaudeSDKError, ThinkingBlock, query

from rig import equal, holds, init, of, result, stream, succeeded, text, turn


async def one_shot(rig):
    """`query` with a string: one turn, then the process ends by itself."""
    messages = [message async for message in query(prompt="%say four", options=rig.options())]
    end = succeeded(messages, "four")
    equal(text(messages), "four", "text")
    holds(init(messages)["session_id"] == end.session_id, "init and result name one session")
    holds(end.num_turns == 1 and end.total_cost_usd > 0 and end.usage["output_tokens"] == 5, "turns, cost, usage")
    process = rig.process()
    equal(len(process.read("control_request/initialize")), 1, "initialize")
    equal([frame["message"]["content"] for frame in process.read("user")], ["%say four"], "prompts")
    equal(process.exit["exit_code"], 0, "exit code")


async def multi_turn(rig):
    """Three turns of one session; cost adds up."""
    async with rig.client() as client:
        turns = [await turn(client, f"%say {word}") for word in ("one", "two", "three")]
    ends = [succeeded(messages, word) for messages, word in zip(turns, ("one", "two", "three"), strict=True)]
    equal(len({end.session_id for end in ends}), 1, "sessions")
    costs = [end.total_cost_usd for end in ends]
    holds(costs == sorted(set(costs)), f"the cost of the session grows: {costs}")
    process = rig.process()
    equal(len(process.wrote("system/init")), 3, "system/init")
    equal(len(process.wrote("result/success")), 3, "results")


async def prompt_stream(rig):
    """`query` with a stream of prompts, which are all answered."""
    prompts = stream("%say first", "%say second")
    messages = [message async for message in query(prompt=prompts, options=rig.options())]
    holds(text(messages).endswith("second"), f"the last prompt is answered: {text(messages)!r}")
    equal(len(rig.process().read("user")), 2, "prompts")


async def thinking(rig):
    """Thinking and text are blocks of their own."""
    async with rig.client() as client:
        messages = await turn(client, "%think hm\n%+say done")
    succeeded(messages, "done")
    blocks = [block for message in of(messages, AssistantMessage) for block in message.content]
    thoughts = [block.thinking for block in blocks if isinstance(block, ThinkingBlock)]
    equal(thoughts, ["hm"], "thinking")


async def max_turns(rig):
    """A limit on rounds ends the turn with an error result; the session goes on."""
    async with rig.client(max_turns=1, allowed_tools=["Bash"]) as client:
        messages = await turn(client, '%tool Bash {"command": "echo x"}\n%say never')
        end = result(messages)
        equal((end.subtype, end.is_error, end.terminal_reason), ("error_max_turns", True, "max_turns"), "result")
        holds(end.errors, "it says why")
        succeeded(await turn(client, "%say again"), "again")
    holds("--max-turns" in rig.process().argv, "the flag is passed")


async def api_error(rig):
    """A failure of the API is a result with an error; the session goes on."""
    async with rig.client() as client:
        end = result(await turn(client, '%error 400 n=9 msg="bad request"'))
        equal((end.subtype, end.is_error, end.api_error_status), ("success", True, 400), "result")
        holds("bad request" in end.result, f"it says why: {end.result}")
        succeeded(await turn(client, "%say again"), "again")


async def refused_flag(rig):
    """A flag that the CLI does not know is refused; the SDK says that it could not start."""
    options = rig.options(extra_args={"no-such-flag": None}, stderr=lambda line: None)
    try:
        async for _ in query(prompt="%say no", options=options):
            pass
    except ClaudeSDKError:
        # Which one it is depends on whether it wrote before the process ended, or after.
        pass
    else:
        raise AssertionError("it started all the same")
    process = rig.process()
    equal(process.exit["exit_code"], 1, "exit code")
    equal(process.said, ["error: unknown option '--no-such-flag'"], "stderr")


async def every_option(rig):
    """The CLI takes every flag that the SDK makes of its options, and says that it plays no plugin."""
    (rig.project / "plugin").mkdir()
    options = {
        "add_dirs": [rig.project / "plugin"],
        "agents": {"helper": AgentDefinition(description="Helps", prompt="Help.", tools=["Read"], model="haiku")},
        "allowed_tools": ["Read", "Bash(ls:*)"],
        "betas": ["context-1m-2025-08-07"],
        "disallowed_tools": ["WebFetch"],
        "effort": "low",
        "enable_file_checkpointing": True,
        "fallback_model": "claude-haiku-4-5",
        "forward_subagent_text": True,
        "include_hook_events": True,
        "include_partial_messages": True,
        "max_budget_usd": 5.0,
        "max_turns": 7,
        "model": "claude-sonnet-4-5",
        "output_format": {"type": "json_schema", "schema": {"type": "object"}},
        "permission_mode": "acceptEdits",
        "plugins": [{"type": "local", "path": str(rig.project / "plugin")}],
        "session_id": "6f1ef1b2-6c0f-4d0c-9a6e-0d5cf57b3f52",
        "setting_sources": ["user", "project", "local"],
        "settings": json.dumps({"permissions": {"allow": ["Glob"]}}),
        "skills": ["tidy"],
        "strict_mcp_config": True,
        "system_prompt": {"type": "preset", "preset": "claude_code", "append": "Be brief."},
        "task_budget": {"total": 20000},
        "thinking": {"type": "enabled", "budget_tokens": 4000, "display": "summarized"},
        "tools": {"type": "preset", "preset": "claude_code"},
        "verbatim_prompts": True,
    }
    async with rig.client(**options) as client:
        messages = await turn(client, "%say fine")
    errors = result(messages).errors
    holds(errors[0].startswith("a plugin is not simulated"), f"the plugin is named: {errors}")
    given = {argument.partition("=")[0] for argument in rig.process().argv if argument.startswith("--")}
    expected = {
        "--add-dir", "--allowedTools", "--append-system-prompt", "--betas", "--disallowedTools", "--effort",
        "--fallback-model", "--include-hook-events", "--include-partial-messages", "--input-format", "--json-schema",
        "--max-budget-usd", "--max-thinking-tokens", "--max-turns", "--model", "--output-format", "--permission-mode",
        "--plugin-dir", "--session-id", "--setting-sources", "--settings", "--strict-mcp-config", "--task-budget",
        "--thinking-display", "--tools", "--verbose",
    }  # fmt: skip
    equal(given, expected, "flags")
