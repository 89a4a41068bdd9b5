"""What the scenarios share: a place of their own, a scripted Messages API, and the agent that is to be tested."""

import asyncio
import json
import os
import re
import subprocess
from pathlib import Path

AGENT = json.loads(os.environ["ACP_AGENT"])
"""The command line of the agent."""

OUTRIGGER = os.environ["OUTRIGGER"]
"""The command that serves the scripted Messages API."""


class Rig:
    """A home, a project and a scripted Messages API for one scenario."""

    def __init__(self, root):
        self.root = Path(root)
        self.home = self.root / "home"
        self.project = self.root / "project"
        for directory in (self.home / ".claude", self.project, self.root / "t"):
            directory.mkdir(parents=True)
        self.lines = []
        """What went over the wire: `client` or `agent`, and the message."""

    def __enter__(self):
        self.api = subprocess.Popen(
            [OUTRIGGER, "mock-api"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=self.project
        )
        api = {}
        for line in self.api.stdout:
            said = re.match(r"export (\w+)=(.*)", line)
            if not said:
                break
            api[said[1]] = said[2].strip("'\"")
            if said[1] == "NO_PROXY":
                break
        holds("ANTHROPIC_BASE_URL" in api, f"the scripted API does not say where it is: {api}")
        self.env = {
            **api,
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "CLAUDE_CODE_TMPDIR": str(self.root / "t"),
            "TMPDIR": str(self.root / "t"),
            # Bypassing permissions is refused to root elsewhere than in a sandbox, which this is.
            "IS_SANDBOX": "1",
        }
        if cli := os.environ.get("CLAUDE_CODE_EXECUTABLE"):
            self.env["CLAUDE_CODE_EXECUTABLE"] = cli
        return self

    def __exit__(self, *_):
        self.api.terminate()
        self.api.wait()

    def log(self):
        """The wire, as text."""
        return "".join(json.dumps({"from": who, "msg": message}) + "\n" for who, message in self.lines)

    def transcripts(self):
        """What the CLI wrote down of all sessions, as text."""
        return "".join(path.read_text() for path in (self.home / ".claude" / "projects").rglob("*.jsonl"))

    def updates(self, kind=None):
        """The updates that the agent sent, or those of one kind."""
        found = [
            message["params"]["update"]
            for who, message in self.lines
            if who == "agent" and message.get("method") == "session/update"
        ]
        return [update for update in found if kind in (None, update["sessionUpdate"])]

    def text(self, kind="agent_message_chunk"):
        """What was said, in one piece."""
        return "".join(update["content"].get("text", "") for update in self.updates(kind))

    def call(self, tool=None):
        """The only tool call, as a client has it in the end: its first update with all others laid over it."""
        calls = {}
        for update in self.updates():
            if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
                known = calls.setdefault(update["toolCallId"], {"statuses": []})
                if update["sessionUpdate"] == "tool_call":
                    # What the protocol says of those that say nothing.
                    update = {"status": "pending", "kind": "other"} | update
                    holds("title" not in known, f"the call {update['toolCallId']} is told of twice")
                else:
                    holds("title" in known, f"the call {update['toolCallId']} is updated before it is told of")
                known.update({key: value for key, value in update.items() if value is not None})
                if update.get("status") and update["status"] not in known["statuses"][-1:]:
                    known["statuses"].append(update["status"])
        found = [
            call
            for call in calls.values()
            if tool in (None, call.get("name"), call.get("_meta", {}).get("claudeCode", {}).get("toolName"))
        ]
        equal(len(found), 1, f"calls of {tool or 'tools'}")
        return found[0]

    def processes(self):
        """The command lines of processes that have this place's home in their environment."""
        mark = f"HOME={self.home}".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    state = (process / "stat").read_text().rsplit(")", 1)[1].split()[0]
                    if state != "Z":
                        found.append((int(process.name), command.strip()))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                pass
        return found


def tool(name, more="", **called_with):
    """The line of a prompt that has the model call a tool; with `more`, in the reply that the line before it began."""
    return f"%{more}tool {name} {json.dumps(called_with, default=str)}"


async def until(condition, what, within=20):
    """Waits until something holds."""
    end = asyncio.get_running_loop().time() + within
    while not condition():
        holds(asyncio.get_running_loop().time() < end, f"{what} within {within} s")
        await asyncio.sleep(0.01)


def holds(condition, what):
    if not condition:
        raise AssertionError(what)


def equal(found, expected, what):
    if found != expected:
        raise AssertionError(f"{what}: {found!r} instead of {expected!r}")
