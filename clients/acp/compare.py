"""Plays the same turns to two agents and says where they differ.

Called with the command lines of two agents, as JSON lists: another one, and ours. Started by `cargo xtask acp-diff`. Prints a line of
JSON for each difference that `differences.json` does not list; that file says of each that it lists why it is meant. What is listed and
does not occur any more is printed too. `docs/acp-differences.md` says the same for people.
"""

import asyncio
import difflib
import json
import logging
import re
import sys
import tempfile
import time
from pathlib import Path

import official
import rig
from acp import schema
from rig import tool

LIMIT = 60
"""Seconds that a turn may take."""

NOTEBOOK = {
    "cells": [{"cell_type": "code", "id": "one", "source": ["1"], "metadata": {}, "outputs": [], "execution_count": None}],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def turns(project):
    """The turns: what is said, which option is chosen when something is asked, the mode, and what becomes of the turn."""
    (project / "a.txt").write_text("one\ntwo\nthree\n")
    (project / "n.ipynb").write_text(json.dumps(NOTEBOOK))
    a, new, done = project / "a.txt", project / "new.txt", "%say done"

    def turn(name, *lines, option="allow-once", **more):
        return {"name": name, "lines": lines, "option": option} | more

    yield turn("text", "%say # Title\n")
    yield turn("thinking", "%think deep", "%+say shallow")
    yield turn("bash", tool("Bash", command="echo from-bash", description="Say it"), done)
    yield turn("bash-fails", tool("Bash", command="echo broken >&2; exit 7", description="Break it"), done)
    yield turn("bash-says-nothing", tool("Bash", command="true", description="Say nothing"), done)
    behind = tool("Bash", command="echo from-behind; exit 3", description="Say it", run_in_background=True)
    yield turn("bash-behind", behind, done, settle=True)
    yield turn("read", tool("Read", file_path=a), done)
    yield turn("read-part", tool("Read", file_path=a, offset=2, limit=1), done)
    yield turn("read-nothing", tool("Read", file_path=project / "nothing.txt"), done)
    yield turn("write", tool("Write", file_path=new, content="new\nfile\n"), done)
    yield turn("write-again", tool("Write", file_path=new, content="new\nlines\n"), done)
    yield turn("edit", tool("Read", file_path=a), tool("Edit", file_path=a, old_string="two", new_string="2"), done)
    yield turn("edit-all", tool("Edit", file_path=a, old_string="e", new_string="E", replace_all=True), done)
    read = tool("Read", file_path=project / "n.ipynb")
    yield turn("notebook", read, tool("NotebookEdit", notebook_path=project / "n.ipynb", cell_id="one", new_source="2"), done)
    yield turn("rejected", tool("Write", file_path=project / "no.txt", content="no"), done, option="reject")
    yield turn("two-at-once", tool("Read", file_path=a), tool("Bash", "+", command="echo second", description="Say it"), done)
    yield turn("todo", tool("TodoWrite", todos=[{"content": "One", "status": "in_progress", "activeForm": "Doing one"}]), done)
    agent = {"description": "Look into it", "prompt": "%say the inner report", "subagent_type": "general-purpose"}
    yield turn("agent", tool("Agent", **agent, run_in_background=False), done)
    yield turn("agent-behind", tool("Agent", **agent, run_in_background=True), done, settle=True)
    colours = [{"label": "Red", "description": "Rose"}, {"label": "Blue", "description": "Sea"}]
    question = {"question": "Which colour?", "header": "Colour", "multiSelect": False, "options": colours}
    yield turn("question", tool("AskUserQuestion", questions=[question]), done)
    yield turn("skill-unknown", tool("Skill", skill="no-such-skill"), done)
    yield turn("plan", '%tool ExitPlanMode {"plan": "# First this\\n"}', done, option="exit-plan-default", mode="plan")
    yield turn("cancel", "%usage in=100 out=50", "%hang", "%say beginning", cancel=True)
    waits = tool("Bash", command="touch began; sleep 60", description="Wait")
    yield turn("bash-stopped", waits, cancel=project / "began")
    yield turn("plan-rejected", '%tool ExitPlanMode {"plan": "# First that\\n"}', done, option="reject", mode="plan")
    yield turn("edit-rejected", tool("Edit", file_path=a, old_string="2", new_string="two"), done, option="reject", mode="default")
    yield turn("stops-short", "%say cut off", "%stop max_tokens")
    yield turn("context", "/context")
    yield turn("compaction", "/compact", settle=True)
    yield turn("model", "/model haiku", settle=True)


async def play(agent):
    """What an agent makes of all turns, by their names."""
    official.AGENT = agent
    told = {}
    with tempfile.TemporaryDirectory(prefix="acp-", ignore_cleanup_errors=True) as root:
        place = rig.Rig(root)
        # Without it the other agent begins in `auto`, in which a scripted API has nobody asked and nothing run.
        settings = {"permissions": {"defaultMode": "default"}}
        (place.home / ".claude" / "settings.json").write_text(json.dumps(settings))
        with place:
            forms = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())
            async with official.talk(place, elicitation=forms) as on:

                async def form(_message, _mode):
                    return schema.AcceptElicitationResponse(action="accept", content={"question_0": "Red"})

                on.client.form = form
                for turn in turns(place.project):
                    on.client.permit = official.allow(turn["option"])
                    if turn.get("mode"):
                        await on.connection.set_session_mode(session_id=on.session, mode_id=turn["mode"])
                    place.lines.clear()
                    reply, end = await asyncio.wait_for(said(on, place, turn), LIMIT)
                    used = "used something" if reply.usage and reply.usage.total_tokens else "used nothing"
                    text = json.dumps([*seen(place.lines, end), ["stop", reply.stop_reason], ["usage", used]])
                    text = text.replace(str(place.project), "{project}").replace(on.session, "{session}")
                    told[turn["name"]] = json.loads(text)
    return told


async def said(on, place, turn):
    """Says what a turn has to say, and waits for what comes of it; the answer, and how many lines came before it."""
    reply = asyncio.create_task(on.prompt(*turn["lines"]))
    if turn.get("cancel"):
        begun = turn["cancel"]
        has_begun = (lambda: place.updates("agent_message_chunk")) if begun is True else begun.exists
        await rig.until(has_begun, "it has begun")
        await on.connection.cancel(session_id=on.session)
    reply = await reply
    end = len(place.lines)
    if turn.get("settle"):
        # What goes on behind the turn ends soon, and some say so and some do not.
        count, quiet = -1, 0
        while quiet < 15:
            quiet = quiet + 1 if count == len(place.lines) else 0
            count = len(place.lines)
            await asyncio.sleep(0.1)
    return reply, end


def seen(lines, end):
    """What a person sees of a turn: messages in one piece, and calls as they are in the end, in the order of their beginnings.

    What the model says behind the end of the turn, of what ended in the background, comes when it comes, and is no part of it.
    """
    found = []
    calls = {}
    chosen = []
    for index, (who, message) in enumerate(lines):
        params = message.get("params", {})
        if who == "agent" and message.get("method") == "session/request_permission":
            options = [[option["optionId"], option["kind"], option["name"]] for option in params["options"]]
            found.append(["permission", params["toolCall"].get("title"), options])
        if who == "agent" and message.get("method") == "elicitation/create":
            found.append(["form", params["message"], params.get("requestedSchema")])
        if who != "agent" or message.get("method") != "session/update":
            continue
        update = params["update"]
        kind = update["sessionUpdate"]
        if kind in ("agent_message_chunk", "agent_thought_chunk"):
            if index >= end:
                continue
            if found and found[-1][0] == kind:
                found[-1][1] += update["content"]["text"]
            else:
                found.append([kind, update["content"]["text"]])
        elif kind in ("tool_call", "tool_call_update"):
            if kind == "tool_call":
                # What the protocol says of those that say nothing.
                update = {"status": "pending", "kind": "other"} | update
            known = calls.get(update["toolCallId"])
            if not known:
                known = calls[update["toolCallId"]] = {"statuses": []}
                found.append(["call", known])
            if update.get("status") and update["status"] not in known["statuses"][-1:]:
                known["statuses"].append(update["status"])
            for key in ("title", "name", "kind", "content", "locations", "rawInput", "rawOutput"):
                if update.get(key) is not None:
                    known[key] = without_null(update[key])
        elif kind == "plan":
            found.append(["plan", update["entries"]])
        elif kind == "current_mode_update":
            found.append(["mode", update["currentModeId"]])
        elif kind == "config_option_update":
            model = [option["currentValue"] for option in update["configOptions"] if option["id"] == "model"]
            # Before or behind the text that tells of it.
            chosen = [["model", *model]] if model != ["default"] else []
    return found + chosen


def without_null(value):
    """To say that there is nothing is to say nothing."""
    if isinstance(value, dict):
        return {key: without_null(item) for key, item in value.items() if item is not None}
    return [without_null(item) for item in value] if isinstance(value, list) else value


def differences(turn, other, ours):
    """Where two stories of a turn differ: the place, and what each says there."""

    def key(thing):
        return f"{thing[0]} {thing[1].get('name')}" if thing[0] == "call" else thing[0]

    keys = [list(map(key, story)) for story in (other, ours)]
    for _, first, last, begin, end in difflib.SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        left, right = other[first:last], ours[begin:end]
        if keys[0][first:last] != keys[1][begin:end]:
            for thing in left:
                yield {"where": f"{turn}: {key(thing)}", "theirs": thing[1:], "ours": None}
            for thing in right:
                yield {"where": f"{turn}: {key(thing)}", "theirs": None, "ours": thing[1:]}
            continue
        for one, two in zip(left, right, strict=True):
            if one[0] != "call":
                if one != two:
                    yield {"where": f"{turn}: {key(one)}", "theirs": one[1:], "ours": two[1:]}
                continue
            for part in sorted(one[1].keys() | two[1].keys()):
                if one[1].get(part) != two[1].get(part):
                    where = f"{turn}: {key(one)}: {part}"
                    yield {"where": where, "theirs": one[1].get(part), "ours": two[1].get(part)}


async def main(other, ours):
    # The other agent says things that the SDK does not know, and complains of.
    logging.disable(logging.CRITICAL)
    began = time.monotonic()
    other, ours = await play(other), await play(ours)
    here = Path(__file__).parent
    listed = json.loads((here / "differences.json").read_text())
    found = [difference for turn in other for difference in differences(turn, other[turn], ours.get(turn, []))]
    bad = []
    for difference in found:
        meant = [entry for entry in listed if is_meant(entry, difference)]
        for entry in meant:
            entry["occurs"] = True
        if not meant:
            bad.append(difference)
    bad += [{"gone": entry} for entry in listed if not entry.get("occurs")]
    told = (here.parent.parent / "docs" / "acp-differences.md").read_text()
    bad += [{"not in the document": entry["why"]} for entry in listed if entry["why"] not in " ".join(told.split())]
    for difference in bad:
        print(json.dumps(difference), flush=True)
    took = round(time.monotonic() - began)
    print(f"{len(other)} turns, {len(found)} differences, {len(listed)} reasons, {took} s: {'FAIL' if bad else 'ok'}")
    return 1 if bad else 0


def is_meant(entry, difference):
    """Whether the list has this difference: the place and both sides fit, as regular expressions."""
    sides = ("theirs", "ours")
    fits = [re.search(entry.get(side, ""), json.dumps(difference[side])) for side in sides]
    return bool(re.fullmatch(entry["where"], difference["where"]) and all(fits))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*map(json.loads, sys.argv[1:3]))))
