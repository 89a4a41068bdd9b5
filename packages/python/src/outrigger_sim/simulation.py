"""One script, for one test."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union

from .player import Player, Real, real_from_environment
from .trace import Flaw, Trace

Script = Union[str, "os.PathLike[str]", Mapping[str, Any]]
"""A script: the path of a file, the YAML text itself, or the same as a mapping.

A text with a line break, or with ``{`` at its beginning, is the script itself.
"""


class Discontent(AssertionError):
    """What the script expected did not happen."""

    def __init__(self, flaws: Sequence[Flaw]) -> None:
        self.flaws = flaws
        super().__init__("the script is not content with the program:" + "".join(f"\n  {flaw}" for flaw in flaws))


class Simulation:
    """The CLI with a script, in a home and a project of its own: the simulated one, or the real one.

    Nothing of the user's own ``~/.claude`` is read or written. Give the program ``cli_path``, ``env`` and ``cwd``, run it, and
    call :meth:`check`.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        place: str | os.PathLike[str],
        base: str | os.PathLike[str] = ".",
        env: Mapping[str, str] | None = None,
        patience: float = 10.0,
        real: Real | None = None,
    ) -> None:
        """Prepares a simulation in the directory ``place``, which has to be new or empty.

        Without a script, the prompts say what the model says. A relative path of a script belongs to ``base``. ``env`` is added
        to the environment of the CLI. ``patience`` is how many seconds a process of the CLI may take to end.

        With ``real=True`` the real CLI plays the script: the one that the official SDK brings, else the one that this version is
        tested with, which npm fetches once. ``real=PATH`` names an executable, and ``real=False`` the simulated CLI. Unless given,
        the environment variable ``OUTRIGGER_SIM_REAL`` decides: ``1``, or the path of an executable.

        Raises :class:`CannotPlay` if there is something in the script that this CLI cannot play, or if the CLI cannot be had.
        """
        self.place = Path(place).resolve()
        self.home = self.place / "home"
        self.cwd = self.place / "project"
        self.patience = patience
        self.place.mkdir(parents=True, exist_ok=True)
        chosen = real_from_environment() if real is None else real
        self.real = chosen is not False
        """Whether it is the real CLI."""
        self._player = Player(_file_of(script, self.place, Path(base)), self.place, chosen)
        self.cli_path = self._player.cli_path
        self.env: dict[str, str] = {**self._player.env, **(env or {})}

    @property
    def options(self) -> dict[str, Any]:
        """Arguments for ``ClaudeAgentOptions``: ``cli_path``, ``env`` and ``cwd``."""
        return {"cli_path": self.cli_path, "env": dict(self.env), "cwd": self.cwd}

    @property
    def is_running(self) -> bool:
        """Whether a process of the CLI has not ended yet."""
        return any(process.running for process in self.trace(patience=0).processes)

    def trace(self, *, patience: float | None = None) -> Trace:
        """What went through, as soon as all processes have ended, or when the patience is at its end."""
        return self._player.trace(self.patience if patience is None else patience)

    def check(self) -> Trace:
        """Waits for the end of the CLI and raises :class:`Discontent` if the script's expectations do not hold."""
        trace = self.trace()
        if not trace.processes:
            raise Discontent([Flaw("", "no process of the CLI was started: the program has to be given `cli_path`")])
        if trace.flaws:
            raise Discontent(trace.flaws)
        return trace

    def end(self) -> None:
        """Ends the processes that the program left behind, and takes the CLI away."""
        self._player.end()

    def gate_reached(self, name: str) -> bool:
        """Whether the script waits, or has waited, for this gate."""
        return (self._player.gates / f"{name}.reached").exists()

    def open_gate(self, name: str) -> None:
        """Has the script go on behind ``wait: {gate: NAME}``."""
        (self._player.gates / name).touch()


def _file_of(script: Script | None, place: Path, base: Path) -> Path | None:
    """The script as a file."""
    if script is None:
        return None
    file = place / "script.yaml"
    if isinstance(script, Mapping):
        # JSON is YAML, as long as no character is written as two halves.
        file.write_text(json.dumps(script, ensure_ascii=False, indent=1), encoding="utf-8")
    elif isinstance(script, str) and ("\n" in script or re.match(r"\s*(\{|\w+:\s)", script)):
        file.write_text(script, encoding="utf-8")
    else:
        file = (base / script).resolve()
        if not file.is_file():
            raise FileNotFoundError(f"there is no script {file}")
    return file
