"""What the plugin does, with the wheel installed."""

import ast
import fnmatch
import os
import re
import select
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, query

import outrigger_sim
from outrigger_sim import simulation

FAILING = Path(__file__).with_name("failing.py")
TESTS = [node for node in ast.parse(FAILING.read_text()).body if getattr(node, "name", "").startswith("test_")]


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def real(pytestconfig):
    """Whether the real CLI plays in this run."""
    return pytestconfig.getoption("claude_real")


@pytest.fixture(scope="module")
def report(tmp_path_factory, pytestconfig):
    """What pytest prints of each test in failing.py."""
    place = tmp_path_factory.mktemp("failing")
    command = [
        sys.executable,
        "-B",
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--basetemp",
        str(place / "t"),
        "--tb=short",
        *(["--claude-real"] if pytestconfig.getoption("claude_real") else []),
    ]
    ran = subprocess.run([*command, str(FAILING)], capture_output=True, text=True, cwd=place, timeout=120)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    # The one that a fixture ends passes, and fails when it is torn down.
    # pytest may add warnings: the official SDK leaves transports of processes to the garbage collector.
    assert re.search(rf"{len(TESTS) - 1} failed, 1 passed,( \d+ warnings?,)? 1 error in", ran.stdout), ran.stdout
    parts = re.split(
        r"^_+ (?:ERROR at teardown of )?(test_\w+)(?:\[.*\])? _+$",
        ran.stdout.partition("short test summary")[0],
        flags=re.MULTILINE,
    )
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.mark.parametrize("failing", TESTS, ids=lambda node: node.name)
def test_what_has_to_fail_fails_and_says_why(failing, report):
    said = report[failing.name]
    lines = iter(said.splitlines())
    for pattern in ast.get_docstring(failing).splitlines():
        assert any(
            fnmatch.fnmatchcase(line, pattern) for line in lines
        ), f"no line like {pattern!r} follows in:\n{said}"


def test_a_test_that_does_not_begin_is_not_judged(tmp_path):
    tests = tmp_path / "test_skipped.py"
    tests.write_text(
        """
import pytest

@pytest.fixture
def sim(claude_sim):
    return claude_sim()

@pytest.fixture
def machine(sim):
    pytest.skip("not on this machine")

def test_skipped(machine):
    pass
"""
    )
    command = [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "t")]
    ran = subprocess.run([*command, str(tests)], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert (ran.returncode, "1 skipped in" in ran.stdout) == (0, True), ran.stdout


def test_a_stage_that_has_died_keeps_no_other_from_its_end(tmp_path):
    from outrigger_sim.pytest_plugin import Simulations

    simulations = Simulations(tmp_path, tmp_path, False)
    died, other = simulations(), simulations()
    stage = died._player._process
    stage.kill()
    stage.wait()
    with pytest.raises(BrokenPipeError):
        died.trace()
    simulations.end()
    assert not Path(other.cli_path).exists()


def test_an_answer_belongs_to_its_question(tmp_path):
    sim = outrigger_sim.Simulation("{prompts: [{steps: [{say: hi}]}]}", place=tmp_path / "place", real=False)
    # As one whose wait was interrupted has left it.
    player = sim._player
    player._process.stdin.write(b'{"report": {"patience_ms": 0}}\n')
    player._process.stdin.flush()
    assert select.select([player._process.stdout], [], [], 20)[0]
    player._owed += 1
    subprocess.run([sim.cli_path, "-p", "x"], env={**os.environ, **sim.env}, cwd=sim.cwd, timeout=60)
    assert len(sim.trace().processes) == 1
    sim.end()


@pytest.mark.anyio
async def test_nothing_of_the_user_is_touched(claude_sim, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / ".claude"))
    monkeypatch.setenv("OUTRIGGER_SIM_SCRIPT", "/of/somebody/else.yaml")
    sim = claude_sim()
    results = [m async for m in query(prompt="%say hi", options=ClaudeAgentOptions(**sim.options))]
    assert results[-1].result == "hi"
    [init] = sim.trace().of_kind("system/init")
    assert init.data["cwd"] == str(sim.cwd)
    assert list((sim.home / ".claude" / "projects").iterdir())
    assert list(home.iterdir()) == []


@pytest.mark.anyio
async def test_a_gate_holds_a_reply_back(claude_sim):
    sim = claude_sim("{prompts: [{steps: [{wait: {gate: go}}, {say: gone}]}]}")
    async with ClaudeSDKClient(ClaudeAgentOptions(**sim.options)) as client:
        await client.query("wait")
        with anyio.fail_after(20):
            while not sim.gate_reached("go"):
                await anyio.sleep(0.005)
        sim.open_gate("go")
        messages = [message async for message in client.receive_response()]
    assert isinstance(messages[-1], ResultMessage) and messages[-1].result == "gone"


@pytest.mark.anyio
async def test_a_run_says_which_cli_plays(claude_sim, real, monkeypatch, tmp_path):
    sim = claude_sim()
    assert sim.real == real
    messages = [m async for m in query(prompt="%say hi", options=ClaudeAgentOptions(cli_path=sim.cli_path))]
    assert messages[-1].result == "hi"
    [process] = sim.trace().processes
    # Only of the simulated CLI it is known how it ended.
    assert (process.running, process.exit_code) == (False, None if real else 0)
    assert process.arguments[:2] == ["--output-format", "stream-json"]
    # Nothing but the path was given, and the home is that of the simulation all the same.
    assert list((sim.home / ".claude" / "projects").iterdir())

    cli = tmp_path / "claude"
    cli.write_text("#!/bin/sh\necho the CLI that was named\n")
    cli.chmod(0o755)
    monkeypatch.setenv("OUTRIGGER_SIM_REAL", str(cli))
    assert not outrigger_sim.Simulation(place=tmp_path / "named", real=False).real
    named = outrigger_sim.Simulation(place=tmp_path / "from the environment")
    ran = subprocess.run([named.cli_path], capture_output=True, text=True, timeout=60)
    assert named.real and ran.stdout == "the CLI that was named\n"
    named.end()

    monkeypatch.setenv("OUTRIGGER_SIM_REAL", "/nowhere/claude")
    with pytest.raises(outrigger_sim.CannotPlay, match="the CLI /nowhere/claude cannot be run"):
        outrigger_sim.Simulation(place=tmp_path / "none")


@pytest.mark.anyio
async def test_a_process_that_its_program_leaves_behind_is_told_and_ended(tmp_path):
    sim = outrigger_sim.Simulation(place=tmp_path / "place", patience=0.05)
    env = {**os.environ, **sim.env}
    flags = ["--output-format=stream-json", "--verbose", "--input-format=stream-json"]
    async with await anyio.open_process([sim.cli_path, *flags], env=env, cwd=sim.cwd) as process:
        assert process.stdin and process.stdout
        await process.stdin.send(b'{"type":"user","message":{"role":"user","content":"%say hi"}}\n')
        await process.stdout.receive()
        with pytest.raises(outrigger_sim.Discontent, match=f"process {process.pid} was still running at the end"):
            sim.check()
        sim.end()
        with anyio.fail_after(20):
            await process.wait()
    assert sim.trace().prompts == ["%say hi"]


def test_the_executable_is_that_of_the_package(monkeypatch):
    assert metadata.version("outrigger-sim") == os.environ["OUTRIGGER_VERSION"]
    assert outrigger_sim.binary().parent == Path(sys.executable).parent
    monkeypatch.setenv("OUTRIGGER_SIM", "/nowhere")
    with pytest.raises(outrigger_sim.BinaryMissing, match="OUTRIGGER_SIM names /nowhere"):
        outrigger_sim.binary()


@pytest.mark.parametrize("text", ["prompts: [{steps: [{say: hi}]}]", "{prompts: []}", "prompts: []\nseed: 1"])
def test_a_text_is_no_path_also_if_it_is_one_line(tmp_path, text):
    assert simulation._file_of(text, tmp_path, tmp_path).read_text() == text
