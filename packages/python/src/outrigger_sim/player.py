"""How a script is played: the one place that knows how the CLI's stand-in is started and where it leaves its reports."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .binary import binary
from .trace import Flaw, Process, read_process


@dataclass(frozen=True)
class Player:
    """A stand-in for the CLI that is ready to be started, any number of times."""

    cli_path: Path
    env: Mapping[str, str]
    """What has to be in the environment of its processes."""
    reports: Path
    gates: Path

    def is_running(self) -> bool:
        """Whether a process has not ended yet."""
        return any(_is_alive(pid) for pid in _unwritten(self.reports))

    def processes(self, patience: float) -> list[Process]:
        """What the processes reported, the first first. Waits for those that still run."""
        until = time.monotonic() + patience
        while self.is_running() and time.monotonic() < until:
            time.sleep(0.005)
        found = []
        for path in self.reports.glob("*.json"):
            pid, text = int(path.stem), path.read_text(encoding="utf-8")
            if text:
                report = json.loads(text)
                found.append((float(report["started_ms"]), read_process(pid, report)))
            else:
                what = (
                    "was still running at the end"
                    if _is_alive(pid)
                    else "ended without a report: it was killed, or refused its arguments"
                )
                found.append(
                    (path.stat().st_mtime * 1000, Process(pid, [], None, None, [Flaw("", f"process {pid} {what}")], []))
                )
        return [process for _, process in sorted(found, key=lambda entry: entry[0])]

    def end(self) -> None:
        """Ends processes that their program left behind."""
        for pid in _unwritten(self.reports):
            try:
                os.kill(pid, signal.SIGTERM)
            except OSError:
                # It has ended.
                pass


def start(script: Path | None, place: Path) -> Player:
    """Prepares the simulated CLI to play a script, with a directory for what it leaves behind."""
    reports, gates = place / "reports", place / "gates"
    reports.mkdir()
    gates.mkdir()
    env = {"OUTRIGGER_SIM_REPORT": str(reports), "OUTRIGGER_SIM_GATES": str(gates)}
    # Empty is none: a script in the environment of the tests is not for this one.
    env["OUTRIGGER_SIM_SCRIPT"] = "" if script is None else str(script)
    return Player(binary(), env, reports, gates)


def _unwritten(reports: Path) -> list[int]:
    """The processes that have not written their report."""
    return [int(path.stem) for path in reports.glob("*.json") if path.stat().st_size == 0]


def _is_alive(pid: int) -> bool:
    if os.name == "nt":
        # Windows has no question that does no harm.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
