"""Plays the same turns to two agents and says where they differ.

Called with the command lines of two agents, as JSON lists: another one, and ours. Prints a line of JSON for each difference; the
list of those that are meant, with the reason for each, is `differences.json`.
"""

import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path

import official
import rig
from acp import schema
from rig import tool

LIMIT = 60
"""Seconds that a turn may take."""


def turns(project):
    """What is said in each turn, what is chosen when something is asked, and what there is to be before."""
    (project / "a.txt").write_text("one\ntwo\nthree\n")
    yield "text", ["%say # Title\n"], None
    yield "thinking", ["%think deep", "%+say shallow"], None
    yield "bash", [tool("Bash", command="echo from-bash", description="Say it"), "%say done"], "allow-once"
    yield "bash-fails", [tool("Bash", command="echo broken >&2; exit 7", description="Break it"), "%say done"], "allow-once"
    yield "read", [tool("Read", file_path=project / "a.txt"), "%say done"], None
    yield "read-part", [tool("Read", file_path=project / "a.txt", offset=2, limit=1), "%say done"], None
    yield "read-nothing", [tool("Read", file_path=project / "nothing.txt"), "%say done"], None
    yield "write", [tool("Write", file_path=project / "new.txt", content="new\n"), "%say done"], "allow-once"
    yield "edit", [
        tool("Read", file_path=project / "a.txt"),
        tool("Edit", file_path=project / "a.txt", old_string="two", new_string="2"),
        "%say done",
    ], "allow-once"
    yield "rejected", [tool("Write", file_path=project / "no.txt", content="no"), "%say done"], "reject"
    yield "two-at-once", [
        tool("Read", file_path=project / "a.txt"),
        tool("Bash", "+", command="echo second", description="Say it"),
        "%say done",
    ], "allow-once"
    yield "agent", [
        tool(
            "Agent",
            description="Look into it",
            prompt="%say the inner report",
            subagent_type="general-purpose",
            run_in_background=False,
        ),
        "%say done",
    ], "allow-once"
    yield "question", [
        tool(
            "AskUserQuestion",
            questions=[
                {
                    "question": "Which colour?",
                    "header": "Colour",
                    "multiSelect": False,
                    "options": [{"label": "Red", "description": "Rose"}, {"label": "Blue", "description": "Sea"}],
                }
            ],
        ),
        "%say done",
    ], None
    yield "skill-unknown", [tool("Skill", skill="no-such-skill"), "%say done"], None
    yield "stops-short", ["%say cut off", "%stop max_tokens"], None


async def play(agent):
    """What an agent makes of all turns, by their names."""
    official.AGENT = agent
    told = {}
    with tempfile.TemporaryDirectory(prefix="acp-", ignore_cleanup_errors=True) as root:
        place = rig.Rig(root)
        with place:
            forms = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())
            async with official.talk(place, elicitation=forms) as on:

                async def form(_message, _mode):
                    return schema.AcceptElicitationResponse(action="accept", content={"question_0": "Red"})

                on.client.form = form
                for name, lines, option in turns(place.project):
                    on.client.permit = official.allow(option)
                    place.lines.clear()
                    reply = await asyncio.wait_for(on.prompt(*lines), LIMIT)
                    text = json.dumps([*seen(place.lines), ["stop", reply.stop_reason]])
                    text = text.replace(str(place.project), "{project}").replace(on.session, "{session}")
                    told[name] = json.loads(text)
    return told


def seen(lines):
    """What a person sees of a turn: messages in one piece, and calls as they are in the end, in the order of their beginnings."""
    found = []
    calls = {}
    for who, message in lines:
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
                    known[key] = update[key]
        elif kind == "plan":
            found.append(["plan", update["entries"]])
    return found


def differences(turn, other, ours):
    """Where two stories of a turn differ: the place, and what each says there."""
    for index in range(max(len(other), len(ours))):
        left = other[index] if index < len(other) else None
        right = ours[index] if index < len(ours) else None
        if left and right and left[0] == right[0] == "call":
            for key in sorted(left[1].keys() | right[1].keys()):
                if left[1].get(key) != right[1].get(key):
                    where = f"{turn}: {left[1].get('name')}: {key}"
                    yield {"where": where, "other": left[1].get(key), "ours": right[1].get(key)}
        elif left != right:
            yield {"where": f"{turn}: {index}", "other": left, "ours": right}


async def main(other, ours):
    other, ours = await play(other), await play(ours)
    meant = {entry["where"]: entry for entry in json.loads((Path(__file__).parent / "differences.json").read_text())}
    good = True
    for turn in other:
        for found in differences(turn, other[turn], ours.get(turn, [])):
            entry = meant.pop(found["where"], None)
            matches = entry and all(re.search(entry[side], json.dumps(found[side])) for side in ("other", "ours"))
            if not matches:
                good = False
                print(json.dumps(found), flush=True)
    for where in meant:
        good = False
        print(json.dumps({"where": where, "gone": meant[where]}), flush=True)
    print(f"{len(other)} turns compared: {'as listed' if good else 'there are differences that are not listed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*map(json.loads, sys.argv[1:3]))))
