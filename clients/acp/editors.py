"""Editors, without a screen: Neovim with CodeCompanion, and Emacs with acp.el.

Their plugins are in no package registry, so that nothing installs them. Each scenario is there when its plugin is: `CODECOMPANION`
names a directory with codecompanion.nvim and plenary.nvim in it, `ACP_EL` that of acp.el.
"""

import asyncio
import json
import os
from pathlib import Path

from rig import AGENT, equal, holds, tool

HERE = Path(__file__).parent / "editors"

CANCELLED = "%hang\n%say only-a\n%+say -beginning"
"""In two pieces, since a chat shows what was asked for, too."""

if "CODECOMPANION" in os.environ:

    async def neovim(rig):
        """A chat in which a file is written once that was allowed, and a turn is stopped."""
        made = rig.project / "made.txt"
        told = await _editor(
            rig,
            "\n".join([tool("Write", file_path=made, content="by neovim"), "%say the-very", "%+say -end"]),
            *[os.environ.get("NVIM", "nvim"), "--headless", "-u", HERE / "neovim.lua"],
            PLUGINS=os.environ["CODECOMPANION"],
        )
        equal(told.get("failure"), None, f"what went wrong, with {told.get('text')!r} in the chat")
        holds(told["accepted"] >= 1, "somebody was asked")
        equal(made.read_text(), "by neovim", "the file")
        holds("made.txt" in told["text"], f"the chat shows the call: {told['text']!r}")


if "ACP_EL" in os.environ:

    async def emacs(rig):
        """A turn in which a file is written once that was allowed, and one that is cancelled."""
        made = rig.project / "made.txt"
        told = await _editor(
            rig,
            "\n".join(["%say before", tool("Write", "+", file_path=made, content="by emacs"), "%say after"]),
            *[os.environ.get("EMACS", "emacs"), "--quick", "--batch"],
            *["--directory", os.environ["ACP_EL"], "--load", HERE / "emacs.el"],
        )
        equal(told["failure"], None, "what went wrong")
        equal(told["said"], "beforeafter\nonly-a-beginning", "what was said")
        equal(told["stops"], ["end_turn", "cancelled"], "how the turns ended")
        equal(made.read_text(), "by emacs", "the file")
        holds(any("made.txt" in (title or "") for title, _ in told["calls"]), f"the call is named: {told['calls']}")
        equal(told["calls"][-1][1], "completed", "the last status")


async def _editor(rig, prompt, *command, **env):
    """Runs an editor; what it tells."""
    env |= {"ACP_AGENT": json.dumps(AGENT), "PROMPT": prompt, "CANCELLED": CANCELLED}
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        env=rig.env | env,
        cwd=rig.project,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=64 << 20,
    )
    out, err = (said.decode(errors="replace") for said in await process.communicate())
    rig.lines.append(("editor", {"out": out, "err": err}))
    holds(out.strip(), f"it says something, not just {err[-1000:]!r}")
    return json.loads(out.strip().splitlines()[-1])
