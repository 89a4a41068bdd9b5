"""One script, for one test."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union

from . import player
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
    """The simulated CLI with a script, in a home and a project of its own.

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
    ) -> None:
        """Prepares a simulation in the directory ``place``, which has to be new or empty.

        Without a script, the prompts say what the model says. A relative path of a script belongs to ``base``. ``env`` is added
        to the environment of the CLI. ``patience`` is how many seconds a process of the CLI may take to end.
        """
        self.place = Path(place).resolve()
        self.home = self.place / "home"
        self.cwd = self.place / "project"
        self.patience = patience
        for directory in (self.home / ".claude", self.cwd, self.place / "tmp"):
            directory.mkdir(parents=True)
        self._player = player.start(_file_of(script, self.place, Path(base)), self.place)
        self.cli_path = str(self._player.cli_path)
        self.env: dict[str, str] = {
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "CLAUDE_CODE_TMPDIR": str(self.place / "tmp"),
            # No account of the user has a part in it.
            "ANTHROPIC_API_KEY": "dummy",
            **self._player.env,
            **(env or {}),
        }

    @property
    def options(self) -> dict[str, Any]:
        """Arguments for ``ClaudeAgentOptions``: ``cli_path``, ``env`` and ``cwd``."""
        return {"cli_path": self.cli_path, "env": dict(self.env), "cwd": self.cwd}

    @property
    def is_running(self) -> bool:
        """Whether a process of the CLI has not ended yet."""
        return self._player.is_running()

    def trace(self, *, patience: float | None = None) -> Trace:
        """What went through. A process reports when it ends, so end the session before."""
        return Trace(self._player.processes(self.patience if patience is None else patience))

    def check(self) -> Trace:
        """Waits for the end of the CLI and raises :class:`Discontent` if the script's expectations do not hold."""
        trace = self.trace()
        flaws = [flaw for process in trace.processes for flaw in process.flaws]
        if not trace.processes:
            nothing = "no process of the simulated CLI was started: the program has to be given `cli_path` and `env`"
            flaws = [Flaw("", nothing)]
        if flaws:
            raise Discontent(flaws)
        return trace

    def end(self) -> None:
        """Ends the processes that the program left behind."""
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
    elif isinstance(script, str) and ("\n" in script or script.lstrip().startswith("{")):
        file.write_text(script, encoding="utf-8")
    else:
        file = (base / script).resolve()
        if not file.is_file():
            raise FileNotFoundError(f"there is no script {file}")
    return file
