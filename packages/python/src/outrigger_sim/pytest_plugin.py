"""The fixture ``claude_sim``."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from .player import Real
from .simulation import Script, Simulation


class Simulations:
    """The simulations of one test."""

    def __init__(self, place: Path, base: Path, real: Real | None = None) -> None:
        self._place = place
        self._base = base
        self._real = real
        self._made: list[Simulation] = []
        self._unjudged: list[Simulation] = []

    def __call__(
        self,
        script: Script | None = None,
        *,
        env: Mapping[str, str] | None = None,
        patience: float = 10.0,
        real: Real | None = None,
    ) -> Simulation:
        """Makes a simulation with this script, which is judged at the end of the test.

        A relative path of a script belongs to the directory of the test's file. The other arguments are those of
        :class:`Simulation`. ``real`` takes precedence over the option ``--claude-real``.
        """
        real = self._real if real is None else real
        place = self._place / f"claude-{len(self._made) + 1}"
        simulation = Simulation(script, place=place, base=self._base, env=env, patience=patience, real=real)
        self._made.append(simulation)
        self._unjudged.append(simulation)
        return simulation

    def judge(self, also_running: bool) -> None:
        """Judges each simulation once. One whose processes still run can wait for a fixture that ends them."""
        for simulation in list(self._unjudged):
            if also_running or not simulation.is_running:
                self._unjudged.remove(simulation)
                simulation.check()

    def forgive(self) -> None:
        """Judges none of them any more: the test has failed already."""
        self._unjudged.clear()

    def end(self) -> None:
        """Leaves no process behind."""
        with ExitStack() as ends:
            for simulation in self._made:
                ends.callback(simulation.end)

    def summary(self) -> str:
        """What has gone through up to now."""
        return "\n".join(simulation.trace(patience=0).summary() for simulation in self._made)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options for a whole run."""
    group = parser.getgroup("outrigger-sim")
    group.addoption(
        "--claude-real", action="store_true", help="let the real Claude Code CLI play the scripts of `claude_sim`"
    )
    group.addoption(
        "--claude-cli",
        metavar="PATH",
        help="with --claude-real: the CLI, in place of the one that the official SDK brings",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuses a CLI that nobody would start."""
    if config.getoption("claude_cli") and not config.getoption("claude_real"):
        raise pytest.UsageError("--claude-cli goes with --claude-real")


_SIMULATIONS = pytest.StashKey[Simulations]()


@pytest.fixture
def claude_sim(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Simulations]:
    """Makes CLIs for a test, simulated or real: ``claude_sim(script)``, ``claude_sim(script, real=True)``.

    The test fails if an expectation of a script does not hold.
    """
    real: Real | None = None
    if request.config.getoption("claude_real"):
        real = request.config.getoption("claude_cli") or True
    simulations = Simulations(tmp_path, request.path.parent, real)
    request.node.stash[_SIMULATIONS] = simulations
    yield simulations
    try:
        simulations.judge(also_running=True)
    finally:
        simulations.end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Judges nothing of a test that does not begin."""
    try:
        return (yield)
    except BaseException:
        if simulations := item.stash.get(_SIMULATIONS, None):
            simulations.forgive()
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Judges what has ended with the test itself, so that the test fails and not its teardown."""
    try:
        outcome = yield
        if simulations := item.stash.get(_SIMULATIONS, None):
            simulations.judge(also_running=False)
        return outcome
    except BaseException:
        if simulations := item.stash.get(_SIMULATIONS, None):
            simulations.forgive()
            item.add_report_section("call", "claude", simulations.summary())
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, object, object]:
    """Keeps the garbage collector out of the report of a test.

    The report parses sources. The official SDK leaves transports of processes to the collector, and pytest parses more sources to report
    each of them. Before 3.11.8 and 3.12.2, Python ends a parse with SystemError if another one runs in the middle of it (gh-106905).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    finally:
        if was_enabled:
            gc.enable()
