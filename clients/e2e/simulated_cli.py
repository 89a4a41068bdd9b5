"""A plugin for pytest that puts the CLI in the place of Claude for the official end-to-end tests, which run as they come.

Each test has a simulation of its own: it finds `claude` in the PATH, since the SDK was installed without a CLI, and its home and its
project are empty. OUTRIGGER_SIM_REAL=1 lets the real CLI play.
"""

import os
from pathlib import Path

import pytest
from outrigger_sim import Simulation

SCRIPT = Path(__file__).with_name("script.yaml")


@pytest.fixture(autouse=True)
def simulated_cli(tmp_path_factory, monkeypatch):
    simulation = Simulation(SCRIPT, place=tmp_path_factory.mktemp("claude"), patience=30)
    for name, value in simulation.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", os.pathsep.join([os.path.dirname(simulation.cli_path), os.environ["PATH"]]))
    monkeypatch.chdir(simulation.cwd)
    yield
    flaws = simulation.trace().flaws
    simulation.end()
    assert not flaws, flaws
