"""Where the executable is."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

NAME = "outrigger-sim.exe" if os.name == "nt" else "outrigger-sim"


class BinaryMissing(RuntimeError):
    """The package is there, and its executable is not."""


def binary() -> Path:
    """The path of the executable ``outrigger-sim`` that this package installed.

    The environment variable ``OUTRIGGER_SIM`` names another one.
    """
    if named := os.environ.get("OUTRIGGER_SIM"):
        if not Path(named).is_file():
            raise BinaryMissing(f"OUTRIGGER_SIM names {named}, and there is no such file")
        return Path(named)
    # One after the other: `sysconfig` is not safe with threads, and rarely needed.
    looked: list[Path] = []
    for path in _places():
        if path.is_file():
            return path
        looked.append(path)
    where = ", ".join(str(path) for path in looked)
    raise BinaryMissing(
        f"the executable {NAME} of the package outrigger-sim is not installed; it was looked for at {where}. "
        "Install the wheel again, or name an executable in OUTRIGGER_SIM."
    )


def sdk_cli() -> Path | None:
    """The CLI that the official SDK brings; none if it was installed without one."""
    package = find_spec("claude_agent_sdk")
    for place in (package and package.submodule_search_locations) or []:
        cli = Path(place) / "_bundled" / ("claude.exe" if os.name == "nt" else "claude")
        if cli.is_file():
            return cli
    return None


def _places() -> Iterator[Path]:
    """Where installers put it: what they wrote down, then the usual directories."""
    try:
        for file in metadata.files("outrigger-sim") or []:
            if file.name == NAME:
                yield Path(str(file.locate())).resolve()
    except metadata.PackageNotFoundError:
        pass
    yield Path(sysconfig.get_path("scripts")) / NAME
    yield Path(sys.executable).parent / NAME
    yield Path(sysconfig.get_path("scripts", f"{os.name}_user")) / NAME
