"""Runs the examples that the official Python SDK has in its source distribution, unchanged, with scripts of ours: once with the simulated
CLI, once with the real one. Both have to behave alike.

They name no CLI, so they find `claude` in the PATH: the SDK was installed from that distribution, which brings no CLI of its own.
OUTRIGGER_SDK_EXAMPLES is where it was unpacked. Several examples run at once, since some of them wait for seconds.
"""

import fnmatch
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from outrigger_sim import Simulation, Trace

SOURCE = Path(os.environ["OUTRIGGER_SDK_EXAMPLES"])
SCRIPTS = Path(__file__).with_name("scripts")

LIMIT = 120
"""Seconds that an example may take."""

NOT_RUN = {
    "streaming_mode_ipython.py": "snippets for a notebook, with `await` outside of functions: no program of Python",
    "session_stores": "adapters without a program of their own, for servers of PostgreSQL, Redis and S3",
    "plugins": "the plugin that plugin_example.py loads",
}
"""What is not run, with the reason."""


DIFFERENT = {
    "stderr_callback_example": "its script writes to stderr, which only the simulated CLI can be told to do",
    "streaming_mode-async_iterable_prompt": "the real CLI answers prompts that wait together, and takes the first rule for them",
}
"""What is not alike with the real CLI, with the reason. An example that no longer differs fails its test."""

NOT_SIMULATED = {"plugin_example": "a plugin is not simulated"}
"""What the simulated CLI does not play, with what it says then."""

PLAYERS = ["simulated", "real"]


@dataclass
class Example:
    """A program, what it has to print, in this order, and what its processes of the CLI have to have seen."""

    file: str
    prints: list[str]
    arguments: list[str] = field(default_factory=list)
    code: int = 0
    processes: int = 1
    check: Callable[[Trace, Path], object] | None = None

    @property
    def id(self) -> str:
        return "-".join([self.file.removesuffix(".py"), *self.arguments])

    @property
    def script(self) -> Path:
        return SCRIPTS / self.file.replace(".py", ".yaml")


def quick_start(trace: Trace, place: Path) -> None:
    trace.assert_tool("Write", {"file_path": "hello.txt"}, times=1, is_error=False)
    assert (place / "hello.txt").read_text() == "Hello, World!"


def system_prompts(trace: Trace, place: Path) -> None:
    def flag(arguments, name):
        return arguments[arguments.index(name) + 1] if name in arguments else None

    given = [
        (flag(p.arguments, "--system-prompt"), flag(p.arguments, "--append-system-prompt")) for p in trace.processes
    ]
    assert given == [
        ("", None),
        ("You are a pirate assistant. Respond in pirate speak.", None),
        (None, None),
        (None, "Always end your response with a fun fact."),
    ]


def agents(trace: Trace, place: Path) -> None:
    kinds = [call.input["subagent_type"] for call in trace.tool_calls]
    assert kinds == ["code-reviewer", "doc-writer", "analyzer"]
    assert not any(call.is_error for call in trace.tool_calls)


def hooks(trace: Trace, place: Path) -> None:
    assert [call.event for call in trace.hook_calls] == [
        *["PreToolUse"] * 2,
        "UserPromptSubmit",
        # The command of the third scene fails, and the hook is only for those that succeed.
        *["PreToolUse"] * 2,
        "PostToolUse",
    ]
    assert not (place / "important_config.txt").exists()
    assert (place / "regular_file.txt").read_text() == "test data"


def permissions(trace: Trace, place: Path) -> None:
    assert [request.outcome for request in trace.permission_requests] == ["allowed", "allowed", "denied", "allowed"]
    assert (place / "safe_output" / "hello.py").exists()


EXAMPLES = [
    *(
        Example("streaming_mode.py", prints, arguments=[scene])
        for scene, prints in {
            # This one waits for half a minute, so it begins.
            "async_iterable_prompt": ["User: Second, *", "Claude: Go on."],
            "basic_streaming": ["Claude: It is 4.", "Result ended"],
            "multi_turn_conversation": ["Claude: It is Paris.", "Result ended", "Claude: Two million.", "Result ended"],
            "concurrent_responses": ["Claude: Four.", "Claude: Twelve.", "Claude: Eight."],
            "with_interrupt": ["*sending interrupt...*", "Result ended", "Claude: A parrot walks into a bar."],
            "manual_message_handling": [
                "Found language: Python",
                "Found language: Ruby",
                "Total languages mentioned: *",
            ],
            "with_options": ["Claude: It is written.", "Tools used: Write"],
            "bash_command": [
                "Tool Use: Bash *",
                "  Command: echo *",
                "Tool Result *Hello from bash!*",
                "Claude: It said hello.",
            ],
            "control_protocol": ["✓ Server info retrieved successfully!", "Claude: Hello!"],
            "error_handling": ["Response timeout after 3 seconds*"],
        }.items()
    ),
    Example(
        "quick_start.py",
        ["Claude: It is 4.", "Claude: Python is a language for people.", "Claude: The file is there.", "Cost: $*"],
        processes=3,
        check=quick_start,
    ),
    Example(
        "agents.py",
        ["Claude: The reviewer found no bugs.", "Claude: The writer says *", "Claude: The analyzer found two files."],
        processes=3,
        check=agents,
    ),
    Example(
        "filesystem_agents.py",
        [
            "Init message received. Agents loaded: *'test-agent'*",
            "Assistant: Hello to you",
            "SUCCESS: *",
            "SUCCESS: test-agent was loaded*",
        ],
    ),
    Example(
        "include_partial_messages.py",
        [
            "StreamEvent(*thinking_delta*",
            "StreamEvent(*text_delta*",
            "AssistantMessage(*A parrot walks into a bar.*",
            "ResultMessage(*",
        ],
    ),
    Example(
        "max_budget_usd.py",
        [
            "Claude: It is 4.",
            "Status: success",
            "=== With Reasonable*",
            "Status: success",
            "Status: error_max_budget_usd",
            "*Budget limit exceeded!",
        ],
        # The SDK raises for a result that is an error.
        code=1,
        processes=3,
    ),
    Example(
        "mcp_calculator.py",
        [
            "Claude: I can calculate.",
            "Using tool: mcp__calc__add",
            "Claude: It is 42.",
            "Claude: It is a bit more than 14.",
            "Claude: It is 12.",
            "Claude: It is 256.",
            "Claude: It is 50.",
        ],
        processes=6,
        check=lambda trace, place: trace.assert_tool("mcp__calc__add", times=2, is_error=False),
    ),
    Example("plugin_example.py", ["Plugins loaded:", "Plugin successfully configured!"]),
    Example(
        "hooks.py",
        [
            "Claude: The hook blocked it.",
            "Claude: The hook let it pass.",
            # The hook of the second scene names another event in its reply, so the CLI ends the turn without asking the model.
            "User: What's my favorite color[?]",
            "Result ended",
            "Claude: There is no such directory.",
            "Claude: The policy blocked it.",
            "Claude: It is written.",
            "Result ended",
        ],
        arguments=["all"],
        processes=5,
        check=hooks,
    ),
    Example(
        "setting_sources.py",
        [
            "✓ /commit is available*",
            "✓ /commit is NOT available*",
            "✓ /commit is NOT available*",
            "✓ /commit is available*",
        ],
        arguments=["all"],
        processes=4,
    ),
    Example(
        "stderr_callback_example.py", ["Error detected: [[]ERROR] a line for the callback", "Captured 1 stderr lines"]
    ),
    Example(
        "streaming_mode_trio.py",
        ["Claude: It is 42.", "Claude: It is 84.", "Claude: It is 12.", "Conversation complete!"],
    ),
    Example(
        "system_prompt.py",
        ["Claude: It is 4."] * 4,
        processes=4,
        check=system_prompts,
    ),
    Example(
        "tool_permission_callback.py",
        [
            "*Allowing bash command: touch*",
            "*Redirecting write from /opt/elsewhere/hello.py to ./safe_output/hello.py",
            "*Denying dangerous command: sudo *",
            "*Claude: It works.",
            "*Task completed!",
        ],
        check=permissions,
    ),
    Example(
        "tools_option.py",
        [
            "Tools from system message: [[]'Glob', 'Grep', 'Read']",
            "Tools from system message: [[]]",
            "Tools from system message (* tools):*",
        ],
        processes=3,
    ),
]


@dataclass
class Run:
    """How an example ended."""

    code: int
    output: str
    simulation: Simulation


def run(example: Example, sdk: Path, place: Path, real: bool) -> Run:
    simulation = Simulation(example.script, place=place, patience=30, real=real)
    path = os.pathsep.join([os.path.dirname(simulation.cli_path), os.environ["PATH"]])
    env = {**os.environ, **simulation.env, "PATH": path}
    command = [sys.executable, "-B", sdk / "examples" / example.file, *example.arguments]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        ended = subprocess.run(command, env=env, cwd=simulation.cwd, text=True, timeout=LIMIT, **streams)
    except subprocess.TimeoutExpired:
        simulation.end()
        raise
    return Run(ended.returncode, ended.stdout, simulation)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """All examples, on their way."""
    root = tmp_path_factory.mktemp("examples")
    # Two of them look for agents and commands of the project around them.
    sdk = root / "sdk"
    shutil.copytree(SOURCE / "examples", sdk / "examples")
    for name, text in {
        "agents/test-agent.md": "---\nname: test-agent\ndescription: Says hello\ntools: Read\n---\n\nSay hello.\n",
        "commands/commit.md": "Commit what was changed.\n",
    }.items():
        file = sdk / ".claude" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    with ThreadPoolExecutor(4) as pool:
        runs = {}
        for example in EXAMPLES:
            for player in PLAYERS:
                place = root / player / example.id
                runs[example.id, player] = pool.submit(run, example, sdk, place, player == "real")
        yield runs
    for ran in runs.values():
        if not ran.exception():
            ran.result().simulation.end()


def behaviour(trace: Trace) -> object:
    """What a program went through, whatever the CLI calls it."""
    return {
        "prompts": [trace.prompts for trace in map(Trace, zip(trace.processes))],
        "tools": [(call.name, call.is_error) for call in trace.tool_calls],
        "permissions": [(request.tool, request.outcome) for request in trace.permission_requests],
        "hooks": [(call.event, call.reply) for call in trace.hook_calls],
        "results": [(result["subtype"], result.get("result")) for result in trace.results],
    }


def played():
    for example in EXAMPLES:
        for player in PLAYERS:
            reason = DIFFERENT.get(example.id) if player == "real" else None
            marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
            yield pytest.param(example, player, marks=marks, id=f"{example.id}-{player}")


@pytest.mark.parametrize(("example", "player"), list(played()))
def test_example(example, player, runs):
    ran = runs[example.id, player].result()
    if player == "simulated" and example.id in NOT_SIMULATED:
        assert ran.code == 1
        assert NOT_SIMULATED[example.id] in ran.output
        return
    assert ran.code == example.code, ran.output
    lines = iter(ran.output.splitlines())
    for pattern in example.prints:
        found = any(fnmatch.fnmatchcase(line, pattern) for line in lines)
        assert found, f"no line like {pattern!r} follows in:\n{ran.output}"
    trace = ran.simulation.check()
    assert len(trace.processes) == example.processes
    if example.check:
        example.check(trace, ran.simulation.cwd)
    if player == "real" and example.id not in NOT_SIMULATED:
        assert behaviour(trace) == behaviour(runs[example.id, "simulated"].result().simulation.trace())


def test_every_example_is_run_or_has_a_reason():
    found = {path.name for path in (SOURCE / "examples").iterdir()}
    assert found == {example.file for example in EXAMPLES} | NOT_RUN.keys()
    assert DIFFERENT.keys() | NOT_SIMULATED.keys() <= {example.id for example in EXAMPLES}
