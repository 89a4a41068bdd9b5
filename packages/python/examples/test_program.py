import os
import subprocess
import sys
from pathlib import Path

AGENT = Path(__file__).with_name("agent.py")


def test_the_program_prints_the_answer(claude_sim):
    sim = claude_sim({"prompts": [{"prompt": "Say hello.", "steps": [{"say": "hello"}]}]})

    env = {**os.environ, **sim.env, "AGENT_CLAUDE": sim.cli_path}
    ran = subprocess.run([sys.executable, AGENT, "Say hello."], env=env, cwd=sim.cwd, capture_output=True, text=True)

    assert (ran.returncode, ran.stdout) == (0, "hello\n"), ran.stderr
