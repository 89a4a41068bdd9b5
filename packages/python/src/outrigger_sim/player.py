"""How a script is played: the one place that knows how the CLI's stand-in is put in place and asked for its report."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Union

from .binary import binary, sdk_cli
from .trace import Trace, read_trace

Real = Union[bool, str, "os.PathLike[str]"]
"""Which CLI plays: ``False`` is the simulated one, ``True`` the real one, and a path the executable of the real one."""

VARIABLE = "OUTRIGGER_SIM_REAL"


class CannotPlay(RuntimeError):
    """The script cannot be played, or the CLI cannot be had."""


class Player:
    """A CLI in place, which may be started any number of times until this ends."""

    def __init__(self, script: Path | None, place: Path, real: Real) -> None:
        """Puts it in place: its home, project and gates are made in the directory ``place``."""
        arguments = ["--sim"]
        if real is not False:
            cli = sdk_cli() if real is True else Path(real)
            arguments = ["--real", *(["--cli", str(cli)] if cli else [])]
        arguments += [str(place), *([str(script)] if script else [])]
        # In a session of its own: Ctrl-C is for the tests, and this ends with its stdin.
        self._process = subprocess.Popen(
            [str(binary()), "stage", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            there = self._read()
        except BaseException:
            self.end()
            raise
        self.cli_path = str(there["claude"])
        self.env: Mapping[str, str] = there["env"]
        self.gates = Path(there["gates"])
        self._last: Trace | None = None
        self._owed = 0

    def trace(self, patience: float) -> Trace:
        """What went through. Waits for the processes that still run, for at most so many seconds."""
        if self._process.stdin is None or self._process.stdin.closed:
            return self._last or Trace([])
        asked = {"report": {"patience_ms": int(patience * 1000)}}
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        self._owed += 1
        # Whoever was interrupted has left answers to earlier questions behind.
        while self._owed > 0:
            report = self._read()
            self._owed -= 1
        self._last = read_trace(report)
        return self._last

    def end(self) -> None:
        """Ends what the program left behind, and removes what was put in place."""
        if self._process.stdin and not self._process.stdin.closed:
            # One that has died takes nothing any more.
            with suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout else b""
        if not line:
            raise CannotPlay(f"{binary()} ended: what it said is on stderr")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise CannotPlay(str(answer["error"]))
        return answer


def real_from_environment() -> Real:
    """What ``OUTRIGGER_SIM_REAL`` says: ``1`` for the real CLI, or the path of its executable."""
    named = os.environ.get(VARIABLE, "")
    return False if named in ("", "0") else True if named == "1" else named
