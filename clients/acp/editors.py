"""Editors, without a screen: Neovim with CodeCompanion and with Avante's client, and Emacs with acp.el.

Their plugins are in no package registry, so that nothing installs them. Each scenario is there when its plugin is: `CODECOMPANION`
names a directory with codecompanion.nvim, plenary.nvim and avante.nvim in it, `ACP_EL` that of acp.el. The reference servers of
`editors/server` need no plugin: their scenarios are there when the editor is.
"""

import asyncio
import json
import os
import shutil
from pathlib import Path

from rig import AGENT, equal, holds, tool

HERE = Path(__file__).parent / "editors"

NVIM, EMACS = os.environ.get("NVIM", "nvim"), os.environ.get("EMACS", "emacs")

CANCELLED = "%hang\n%say only-a\n%+say -beginning"
"""In two pieces, since a chat shows what was asked for, too."""

if "CODECOMPANION" in os.environ:

    async def neovim(rig):
        """A chat in which a file is written once that was allowed, and a turn is stopped."""
        made = rig.project / "made.txt"
        told = await _editor(
            rig,
            "\n".join([tool("Write", file_path=made, content="by neovim"), "%say the-very", "%+say -end"]),
            *[NVIM, "--headless", "-u", HERE / "neovim.lua"],
            PLUGINS=os.environ["CODECOMPANION"],
        )
        equal(told.get("failure"), None, f"what went wrong, with {told.get('text')!r} in the chat")
        holds(told["accepted"] >= 1, "somebody was asked")
        equal(made.read_text(), "by neovim", "the file")
        holds("made.txt" in told["text"], f"the chat shows the call: {told['text']!r}")

    async def neovim_review(rig):
        """The same with edits that Neovim writes: into the buffer of the file, which CodeCompanion saves."""
        made = rig.project / "made.txt"
        written = rig.root / "written"
        told = await _editor(
            rig,
            "\n".join([tool("Write", file_path=made, content="by neovim"), "%say the-very", "%+say -end"]),
            *[NVIM, "--headless", "-u", HERE / "neovim.lua"],
            ACP_AGENT=json.dumps([*AGENT, "--review-edits"]),
            PLUGINS=os.environ["CODECOMPANION"],
            WRITTEN=str(written),
        )
        equal(told.get("failure"), None, f"what went wrong, with {told.get('text')!r} in the chat")
        equal(written.read_text(), f"{made}\n", "the files that Neovim wrote")
        equal(made.read_text(), "by neovim", "the file")


if (Path(os.environ.get("CODECOMPANION", "")) / "avante.nvim").is_dir():

    async def neovim_avante(rig):
        """A turn of Avante's client in which a file is written once that was allowed, and one that is cancelled."""
        made = rig.project / "made.txt"
        told = await _editor(
            rig,
            "\n".join(["%say before", tool("Write", "+", file_path=made, content="by avante"), "%say after"]),
            *[NVIM, "--headless", "-u", HERE / "avante.lua"],
            PLUGINS=os.environ["CODECOMPANION"],
        )
        equal(told.get("failure"), None, "what went wrong")
        equal(told["said"], "beforeafteronly-a-beginning", "what was said")
        equal(told["stops"], ["end_turn", "cancelled"], "how the turns ended")
        equal(told["asked"], 1, "how often somebody was asked")
        equal(made.read_text(), "by avante", "the file")
        equal(told["calls"][-1][1], "completed", "the last status")


if "ACP_EL" in os.environ:

    async def emacs(rig):
        """A turn in which a file is written once that was allowed, and one that is cancelled."""
        made = rig.project / "made.txt"
        told = await _editor(
            rig,
            "\n".join(["%say before", tool("Write", "+", file_path=made, content="by emacs"), "%say after"]),
            *[EMACS, "--quick", "--batch"],
            *["--directory", os.environ["ACP_EL"], "--load", HERE / "emacs.el"],
        )
        equal(told["failure"], None, "what went wrong")
        equal(told["said"], "beforeafter\nonly-a-beginning", "what was said")
        equal(told["stops"], ["end_turn", "cancelled"], "how the turns ended")
        equal(made.read_text(), "by emacs", "the file")
        holds(any("made.txt" in (title or "") for title, _ in told["calls"]), f"the call is named: {told['calls']}")
        equal(told["calls"][-1][1], "completed", "the last status")

    async def emacs_more(rig):
        """Edits in the editor's own review, its open files as a tool, a subagent that is cancelled, and a session that is loaded in part."""
        accepted, rejected, opened = (rig.project / name for name in ("accepted.txt", "rejected.txt", "open.txt"))
        opened.write_text("open\n")
        waits = tool("Bash", command="touch began; while true; do sleep 0.05; done", description="Wait")
        agent = {"description": "stopped", "prompt": waits, "subagent_type": "general-purpose", "run_in_background": True}
        edits = [tool("Write", file_path=path, content="by emacs\n") for path in (accepted, rejected)]
        prompts = ["\n".join([*edits, tool("mcp__editor__get_open_files"), "%say one."]), "\n".join([tool("Agent", **agent), "%say two."])]
        told = await _editor(
            rig,
            "",
            *[EMACS, "--quick", "--batch"],
            *["--directory", os.environ["ACP_EL"], "--load", HERE / "more.el"],
            PROMPTS=json.dumps(prompts),
            FILE=str(opened),
        )
        equal(told["failure"], None, "what went wrong")
        equal(told["reviewed"], ["accepted.txt", "rejected.txt"], "what Emacs was to write")
        equal(accepted.read_text(), "by emacs\n", "the file that was accepted")
        holds(not rejected.exists(), "the other one is not there")
        known = rig.transcripts()
        holds("The user rejected this edit" in known, "the model knows what was rejected")
        holds("open.txt" in known, "the model knows the open files")
        equal(told["stopped"], "cancelled", "how the subagent ended")
        equal(told["said"], "one.two.", "what was said")
        equal(told["replayed"], "two.", "what was replayed")
        equal(told["earlier"], "one.", "what was earlier")


if shutil.which(NVIM):

    async def neovim_server(rig):
        """The reference server for Neovim has the tools that are documented, and answers calls."""
        await _server(rig, NVIM, "--headless", "--clean", "-c", f"luafile {HERE / 'server' / 'neovim.lua'}", "-c", "qa!")


if shutil.which(EMACS):

    async def emacs_server(rig):
        """The same for Emacs."""
        await _server(rig, EMACS, "--quick", "--batch", "--load", HERE / "server" / "emacs.el")


async def _server(rig, *command):
    """Runs an editor with a file of three lines: the first is changed, the second has a diagnostic, and the last two are selected."""
    file = rig.project / "a.txt"
    file.write_text("one\ntwo\nthree\n")

    def call(name, **arguments):
        return {"method": "tools/call", "params": {"name": name, "arguments": arguments}}

    requests = [
        {"method": "server/discover"},
        {"method": "tools/list"},
        call("get_diagnostics", path=str(file)),
        call("get_diagnostics", path=str(rig.project / "other.txt")),
        call("get_selection"),
        call("get_open_files"),
        call("unknown"),
        {"method": "unknown"},
    ]
    told = await _run(rig, *command, FILE=str(file), REQUESTS=json.dumps(requests))
    equal(told["entry"], {"type": "acp", "name": "editor", "serverId": "editor"}, "the entry for mcpServers")
    discovered, listed, found, nothing, selected, opened, *unknown = told["answers"]
    equal(discovered["result"]["supportedVersions"], ["2026-07-28"], "the revision of MCP")
    equal(discovered["result"]["capabilities"], {"tools": {}}, "the capabilities")
    equal(listed["result"]["tools"], json.loads((HERE / "server" / "tools.json").read_text()), "the tools")
    for answer in (found, nothing, selected, opened):
        text = json.loads(answer["result"]["content"][0]["text"])
        equal(text, answer["result"]["structuredContent"], "the text of an answer")
    [diagnostic] = found["result"]["structuredContent"]["diagnostics"]
    diagnostic.pop("source")
    wrong = {"path": str(file), "line": 2, "column": 3, "severity": "error", "message": "it is wrong"}
    equal(diagnostic, wrong, "the diagnostic")
    equal(nothing["result"]["structuredContent"], {"diagnostics": []}, "the diagnostics of another file")
    selection = {"path": str(file), "line": 3, "startLine": 2, "endLine": 3, "text": "two\nthree"}
    equal(selected["result"]["structuredContent"], selection, "the selection")
    files = opened["result"]["structuredContent"]["files"]
    open_file = {"path": str(file), "isActive": True, "isModified": True, "language": "text"}
    equal(files, [open_file], "the open files")
    equal([answer["error"]["code"] for answer in unknown], [-32602, -32601], "the errors")


async def _editor(rig, prompt, *command, **env):
    """Runs an editor with the agent; what it tells."""
    return await _run(rig, *command, **{"ACP_AGENT": json.dumps(AGENT), "PROMPT": prompt, "CANCELLED": CANCELLED} | env)


async def _run(rig, *command, **env):
    """Runs an editor; what it tells."""
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
