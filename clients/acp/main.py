"""Runs real ACP clients against the agent, which drives the real CLI, which talks to a scripted Messages API.

Prints a JSON object for each scenario: `scenario`, `ok`, `ms`, and `why` when it failed. Started by `cargo xtask clients`.
"""

import asyncio
import importlib
import json
import logging
import sys
import tempfile
import time
import traceback

import rig

LIMIT = 90
"""Seconds that a scenario may take."""

MODULES = ["turns", "asks", "background", "sessions", "back", "life", "servers", "small", "acpx", "registry", "rust", "editors"]


def scenarios():
    """All scenarios: the coroutines of the modules, with their names as the report has them."""
    for module in MODULES:
        for name, function in vars(importlib.import_module(module)).items():
            if asyncio.iscoroutinefunction(function) and function.__module__ == module and name[0] != "_":
                yield name.replace("_", "-"), function


async def run(name, function):
    """Runs one and reports it."""
    began = time.monotonic()
    why = None
    with tempfile.TemporaryDirectory(prefix="acp-", ignore_cleanup_errors=True) as root:
        place = rig.Rig(root)
        try:
            with place:
                await asyncio.wait_for(function(place), LIMIT)
                await rig.until(lambda: not place.processes(), f"no process is left: {place.processes()}", 10)
        except TimeoutError:
            why = f"nothing more came within {LIMIT} s"
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            why = f"{type(error).__name__}: {error} ({frame.filename.rsplit('/', 1)[-1]}:{frame.lineno})"
        log = place.log() if why else None
    report = {"scenario": name, "ok": why is None, "ms": round((time.monotonic() - began) * 1000)}
    if why is not None:
        report |= {"why": why, "log": log}
    print(json.dumps(report), flush=True)
    return why is None


async def main(wanted):
    """Runs all, or those whose names were given."""
    logging.disable(logging.CRITICAL)
    chosen = [(name, function) for name, function in scenarios() if not wanted or name in wanted]
    good = [await run(name, function) for name, function in chosen]
    return 0 if good and all(good) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
