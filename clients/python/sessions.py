"""Sessions that outlive their process."""

import json

from claude_agent_sdk import ClaudeSDKError, query

from rig import equal, holds, init, succeeded


async def _ask(rig, prompt, **more):
    messages = [message async for message in query(prompt=prompt, options=rig.options(**more))]
    return messages


async def resume(rig):
    """A session is taken up by its id, in another process."""
    first = succeeded(await _ask(rig, "%say one"), "one")
    second = succeeded(await _ask(rig, "%say two", resume=first.session_id), "two")
    equal(second.session_id, first.session_id, "session")
    transcripts = list((rig.home / ".claude" / "projects").rglob("*.jsonl"))
    equal([path.stem for path in transcripts], [first.session_id], "transcripts")
    text = transcripts[0].read_text()
    holds("%say one" in text and "%say two" in text, "the transcript has both prompts")
    holds(f"--resume={first.session_id}" in rig.processes(2)[1].argv, "the flag is passed")


async def continue_session(rig):
    """The last session of the directory is taken up."""
    first = succeeded(await _ask(rig, "%say one"), "one")
    second = succeeded(await _ask(rig, "%say two", continue_conversation=True), "two")
    equal(second.session_id, first.session_id, "session")


async def fork_session(rig):
    """A fork has an id of its own, and leaves the session as it was."""
    first = succeeded(await _ask(rig, "%say one"), "one")
    fork = succeeded(await _ask(rig, "%say two", resume=first.session_id, fork_session=True), "two")
    holds(fork.session_id != first.session_id, "a session of its own")
    transcripts = {path.stem: path.read_text() for path in (rig.home / ".claude" / "projects").rglob("*.jsonl")}
    equal(set(transcripts), {first.session_id, fork.session_id}, "transcripts")
    holds("%say two" not in transcripts[first.session_id], "the first is as it was")
    holds("%say one" in transcripts[fork.session_id], "the fork knows what was said before")


async def session_id(rig):
    """A session gets the id that the host chose."""
    chosen = "6f1ef1b2-6c0f-4d0c-9a6e-0d5cf57b3f52"
    messages = await _ask(rig, "%say one", session_id=chosen)
    equal(succeeded(messages, "one").session_id, chosen, "session")
    equal(init(messages)["session_id"], chosen, "session of init")


async def resume_unknown(rig):
    """A session that is not there is an error."""
    missing = "00000000-0000-4000-8000-000000000000"
    try:
        messages = await _ask(rig, "%say one", resume=missing, stderr=lambda line: None)
    except ClaudeSDKError:
        # Which one it is depends on whether it wrote before the process ended, or after.
        pass
    else:
        raise AssertionError(f"it started all the same: {messages}")
    process = rig.process()
    equal(process.exit["exit_code"], 1, "exit code")
    holds(missing in json.dumps([process.said, process.frames]), "it names the session")
