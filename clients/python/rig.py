"""What the scenarios share: a place of their own, the SDK's options for it, and what the simulator saw."""

import json
import os
import time
from pathlib import Path

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    UserMessage,
)

SIMULATOR = os.environ["OUTRIGGER_SIM"]
"""The executable that stands in for the CLI."""


SCRIPTS = Path(os.environ["OUTRIGGER_SCRIPTS"])
"""Where the scripts are."""


class Process:
    """One run of the simulator, as it logged it."""

    def __init__(self, argv):
        self.argv = argv
        self.frames = []
        self.said = []
        self.exit = None

    def read(self, kind):
        """The frames of a kind that it got from the SDK."""
        return [frame for way, frame in self.frames if way == "in" and kind_of(frame) == kind]

    def wrote(self, kind):
        """The frames of a kind that it wrote to the SDK."""
        return [frame for way, frame in self.frames if way == "out" and kind_of(frame) == kind]


class Rig:
    """A home, a project and a log for the processes of one scenario."""

    def __init__(self, root):
        self.root = Path(root)
        self.home = self.root / "home"
        self.project = self.root / "project"
        self.log = self.root / "log.jsonl"
        for directory in (self.home / ".claude", self.project, self.root / "t"):
            directory.mkdir(parents=True)

    def options(self, env=None, **more):
        """Options that name the simulator as the CLI and keep it in this place."""
        variables = {
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "CLAUDE_CODE_TMPDIR": str(self.root / "t"),
            "TMPDIR": str(self.root / "t"),
            "OUTRIGGER_SIM_LOG": str(self.log),
            "OUTRIGGER_SIM_REAL_TOOLS": "1",
        }
        more.setdefault("cwd", self.project)
        return ClaudeAgentOptions(cli_path=SIMULATOR, env={**variables, **(env or {})}, **more)

    def client(self, **more):
        """A client with such options."""
        return ClaudeSDKClient(options=self.options(**more))

    def processes(self, count=1):
        """What was logged, once this many processes have ended."""
        until = time.monotonic() + 20
        while True:
            found = read_log(self.log)
            if len(found) >= count and all(process.exit is not None for process in found):
                equal(len(found), count, "processes")
                return found
            if time.monotonic() > until:
                raise AssertionError(f"{len(found)} of {count} processes have ended and logged in 20 s")
            time.sleep(0.01)

    def script(self, name):
        """Variables that have the simulator play this script and write its report here."""
        return {"OUTRIGGER_SIM_SCRIPT": str(SCRIPTS / name), "OUTRIGGER_SIM_REPORT": str(self.root / "report.json")}

    def flaws(self):
        """What the script of the only process did not like, once that has ended."""
        self.process()
        until = time.monotonic() + 20
        while not (self.root / "report.json").exists():
            holds(time.monotonic() < until, "there is no report of the script in 20 s")
            time.sleep(0.01)
        return [flaw["what"] for flaw in json.loads((self.root / "report.json").read_text())["flaws"]]

    def process(self):
        """What the only process logged."""
        return self.processes()[0]


def read_log(path):
    processes = []
    text = path.read_text() if path.exists() else ""
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        entry = json.loads(line)
        frame = entry["msg"]
        if entry["dir"] == "err":
            processes[-1].said.append(frame["raw"])
        elif entry["dir"] != "meta":
            processes[-1].frames.append((entry["dir"], frame))
        elif "argv" in frame:
            processes.append(Process(frame["argv"]))
        else:
            processes[-1].exit = frame
    return processes


def kind_of(frame):
    """`type` or `type/subtype`, the subtype being that of the payload for control frames."""
    kind = frame.get("type", "?")
    subtype = {
        "control_request": lambda: frame["request"]["subtype"],
        "control_response": lambda: frame["response"]["subtype"],
        "command_lifecycle": lambda: frame["state"],
        "stream_event": lambda: frame["event"]["type"],
    }.get(kind, lambda: frame.get("subtype"))()
    return f"{kind}/{subtype}" if subtype else kind


async def turn(client, prompt):
    """Sends a prompt and collects what comes up to its result."""
    await client.query(prompt)
    return [message async for message in client.receive_response()]


async def stream(*prompts):
    """Prompts as the SDK takes them in a stream."""
    for prompt in prompts:
        yield {
            "type": "user",
            "message": {"role": "user", "content": prompt},
            "parent_tool_use_id": None,
            "session_id": "",
        }


def result(messages):
    """The result of a turn, which is the only one and the last of its messages."""
    results = of(messages, ResultMessage)
    equal(len(results), 1, "results")
    return results[0]


def of(messages, kind):
    """The messages of a type."""
    return [message for message in messages if isinstance(message, kind)]


def init(messages):
    """The data of `system/init`."""
    found = [message for message in of(messages, SystemMessage) if message.subtype == "init"]
    equal(len(found), 1, "system/init")
    return found[0].data


def text(messages):
    """What the model said, joined."""
    blocks = (block for message in of(messages, AssistantMessage) for block in message.content)
    return "".join(block.text for block in blocks if isinstance(block, TextBlock))


def tool_results(messages):
    """The results of tool calls."""
    lists = (message.content for message in of(messages, UserMessage) if isinstance(message.content, list))
    return [block for blocks in lists for block in blocks if isinstance(block, ToolResultBlock)]


def content(block):
    """The text of a tool result."""
    if isinstance(block.content, str):
        return block.content
    return "".join(part.get("text", "") for part in block.content)


def succeeded(messages, answer):
    """Checks that a turn ended well and with this answer."""
    end = result(messages)
    equal((end.subtype, end.is_error, end.result), ("success", False, answer), "result")
    return end


def equal(seen, expected, what):
    """Fails with both when they differ."""
    if seen != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {seen!r}")


def holds(condition, what):
    """Fails with this explanation."""
    if not condition:
        raise AssertionError(what)
