"""Functions of the host that run at events."""

from claude_agent_sdk import HookMatcher

from rig import content, equal, holds, result, succeeded, tool_results, turn

TOUCH = '%tool Bash {"command": "touch made.txt"}\n%say done'


async def hook_pre_tool_use_deny(rig):
    """PreToolUse denies one tool's calls; its matcher leaves the others alone."""
    seen = []

    async def guard(given, tool_use_id, context):
        seen.append((given["hook_event_name"], given["tool_name"], tool_use_id))
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "no shell here",
            }
        }

    matchers = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[guard])]}
    (rig.project / "x.txt").write_text("hello")
    prompt = f'%tool Read {{"file_path": "{rig.project / "x.txt"}"}}\n{TOUCH}'
    async with rig.client(hooks=matchers) as client:
        messages = await turn(client, prompt)
    succeeded(messages, "done")
    read, refused = tool_results(messages)
    holds(not read.is_error and "hello" in content(read), f"Read: {read}")
    holds(refused.is_error and "no shell here" in content(refused), f"Bash: {refused}")
    equal(seen, [("PreToolUse", "Bash", refused.tool_use_id)], "calls of the hook")
    holds(not (rig.project / "made.txt").exists(), "the command did not run")


async def hook_pre_tool_use_allow(rig):
    """PreToolUse allows a call, and changes its input; nobody else is asked."""

    async def allow(given, tool_use_id, context):
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "allow",
                "updatedInput": {**given["tool_input"], "command": "touch other.txt"},
            }
        }

    async with rig.client(hooks={"PreToolUse": [HookMatcher(hooks=[allow])]}) as client:
        succeeded(await turn(client, TOUCH), "done")
    equal(sorted(path.name for path in rig.project.iterdir()), ["other.txt"], "files")
    equal(rig.process().wrote("control_request/can_use_tool"), [], "can_use_tool")


async def hook_post_tool_use(rig):
    """PostToolUse sees the tool's response."""
    seen = []

    async def after(given, tool_use_id, context):
        seen.append((given["hook_event_name"], given["tool_input"]["command"], given["tool_response"]["stdout"]))
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "seen"}}

    options = {"hooks": {"PostToolUse": [HookMatcher(matcher="Bash", hooks=[after])]}, "allowed_tools": ["Bash"]}
    async with rig.client(**options) as client:
        succeeded(await turn(client, '%tool Bash {"command": "echo hello"}\n%say done'), "done")
    equal(seen, [("PostToolUse", "echo hello", "hello")], "calls of the hook")


async def hook_user_prompt_submit(rig):
    """UserPromptSubmit sees each prompt and can refuse it."""
    seen = []

    async def submit(given, tool_use_id, context):
        seen.append(given["prompt"])
        if "secret" in given["prompt"]:
            return {"decision": "block", "reason": "that is secret"}
        return {}

    async with rig.client(hooks={"UserPromptSubmit": [HookMatcher(hooks=[submit])]}) as client:
        succeeded(await turn(client, "%say fine"), "fine")
        refused = result(await turn(client, "%say secret"))
    equal(seen, ["%say fine", "%say secret"], "prompts")
    holds("that is secret" in refused.result and refused.num_turns == 0, f"result: {refused.result}")


async def hook_stop(rig):
    """Stop keeps the turn going once."""
    seen = []

    async def stop(given, tool_use_id, context):
        seen.append(given["stop_hook_active"])
        return {} if given["stop_hook_active"] else {"decision": "block", "reason": "one more thing"}

    async with rig.client(hooks={"Stop": [HookMatcher(hooks=[stop])]}) as client:
        succeeded(await turn(client, "%say first\n%say second"), "second")
    equal(seen, [False, True], "calls of the hook")
