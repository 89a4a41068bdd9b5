"""What went through between a program and the simulated CLI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Flaw:
    """Something that the script expected otherwise."""

    place: str
    """Where in the script, as ``FILE:LINE:COLUMN``; empty if it belongs to no place."""
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" if self.place else self.what


@dataclass(frozen=True)
class Frame:
    """One JSON object on a line of a pipe."""

    at_ms: float
    """When, since the start of its process."""
    sender: Literal["client", "cli"]
    """``client`` is the program under test."""
    kind: str
    """Its type, with the subtype: ``assistant``, ``control_request/can_use_tool``."""
    data: Json


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool by the model."""

    id: str
    name: str
    input: Json
    parent: str | None
    """The id of the call that started the subagent which made this one."""
    result: str | None
    """The text that the model read; ``None`` if no result came."""
    is_error: bool


@dataclass(frozen=True)
class PermissionRequest:
    """A request for a permission, with what the program replied."""

    tool: str
    input: Json
    reply: Json | None
    """The reply as it was sent: ``behavior``, ``updatedInput``, ``message``; ``None`` if none came."""
    error: str | None
    """What the program replied in place of a decision, when its callback failed."""

    @property
    def outcome(self) -> Literal["allowed", "denied", "failed"]:
        """What became of it; ``failed`` without a decision that the CLI understands.

        It understands an ``allow`` unless its ``updatedInput`` is no object, and a ``deny`` with a ``message``.
        """
        reply = _object(self.reply)
        if reply.get("behavior") == "allow" and isinstance(reply.get("updatedInput", {}), Mapping):
            return "allowed"
        if reply.get("behavior") == "deny" and isinstance(reply.get("message"), str):
            return "denied"
        return "failed"


@dataclass(frozen=True)
class HookCall:
    """A call of a hook, with what the program replied."""

    event: str
    input: Json
    reply: Json | None
    error: str | None


@dataclass(frozen=True)
class Process:
    """One run of the CLI."""

    pid: int
    arguments: Sequence[str]
    """Its command line, without the program."""
    cwd: str
    """Its working directory."""
    running: bool
    """Whether it has not ended yet."""
    exit_code: int | None
    """``None`` if it runs, if a signal ended it, or if it is the real CLI."""
    signal: int | None
    frames: Sequence[Frame] = field(repr=False)


@dataclass(frozen=True)
class Trace:
    """What went through, of all processes of a simulation, in the order in which they were started."""

    processes: Sequence[Process]
    flaws: Sequence[Flaw] = ()
    """What the script expected otherwise, up to now."""

    @property
    def frames(self) -> list[Frame]:
        """All frames of both directions."""
        return [frame for process in self.processes for frame in process.frames]

    def of_kind(self, kind: str) -> list[Frame]:
        """The frames of a kind, such as ``result/success`` or ``control_request/interrupt``."""
        return [frame for frame in self.frames if frame.kind == kind]

    @property
    def prompts(self) -> list[str]:
        """The text of each prompt that the program sent."""
        sent = (frame for frame in self.of_kind("user") if frame.sender == "client")
        return [_text(_content(frame)) for frame in sent]

    @property
    def results(self) -> list[Json]:
        """The ``result`` message of each turn."""
        return [frame.data for frame in self.frames if frame.data.get("type") == "result"]

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls that the model made, those of subagents included; the CLI does not tell those of agents that a subagent started."""
        return [
            call for n, process in enumerate(self.processes) for call in _tool_calls(process, self.processes[n + 1 :])
        ]

    @property
    def permission_requests(self) -> list[PermissionRequest]:
        """What the program was asked to permit, and how it decided."""
        found = self._requests("can_use_tool")
        return [
            PermissionRequest(str(request.get("tool_name", "")), _object(request.get("input")), reply, error)
            for request, reply, error in found
        ]

    @property
    def hook_calls(self) -> list[HookCall]:
        """The calls of the program's hooks."""
        found = (
            (_object(request.get("input")), reply, error) for request, reply, error in self._requests("hook_callback")
        )
        return [HookCall(str(given.get("hook_event_name", "")), given, reply, error) for given, reply, error in found]

    def _requests(self, subtype: str) -> Iterator[tuple[Json, Json | None, str | None]]:
        """The requests of the CLI with this subtype, each with the reply or the error that it read.

        That is the first one, unless it had taken the request back before.
        """
        for process in self.processes:
            replies: dict[Any, Json] = {}
            for frame in process.frames:
                kind = (frame.sender, frame.data.get("type"))
                if kind == ("client", "control_response"):
                    response = _object(frame.data.get("response"))
                    replies.setdefault(response.get("request_id"), response)
                elif kind == ("cli", "control_cancel_request"):
                    replies.setdefault(frame.data.get("request_id"), {})
            for frame in process.frames:
                if frame.sender == "cli" and frame.kind == f"control_request/{subtype}":
                    response = replies.get(frame.data.get("request_id"), {})
                    reply, error = response.get("response"), response.get("error")
                    yield _object(frame.data.get("request")), reply, None if error is None else str(error)

    def assert_prompts(self, *expected: str) -> None:
        """Fails unless these are the prompts that the program sent."""
        _hold(self.prompts == list(expected), f"expected the prompts {list(expected)}", self.prompts)

    def assert_tool(
        self,
        name: str,
        input: Json | None = None,
        *,
        times: int | None = None,
        is_error: bool | None = None,
    ) -> list[ToolCall]:
        """Fails unless the tool was called, and returns those calls.

        ``input`` has the keys that the input must have at least, ``is_error`` says how it must have ended (a call without a result has
        not), and ``times`` how many
        such calls there must be; without it, at least one.
        """
        found = [
            call
            for call in self.tool_calls
            if call.name == name
            and _matches(input or {}, call.input)
            and (is_error is None or (call.result is not None and call.is_error == is_error))
        ]
        wanted = f"a call of {name}" if times is None else f"{times} calls of {name}"
        wanted += "" if input is None else f" with {dict(input)}"
        wanted += "" if is_error is None else " that fails" if is_error else " that succeeds"
        _hold(bool(found) if times is None else len(found) == times, f"expected {wanted}", self.tool_calls)
        return found

    def assert_permission(
        self, tool: str, outcome: Literal["allowed", "denied", "failed"], input: Json | None = None
    ) -> PermissionRequest:
        """Fails unless the program was asked to permit the tool and this came of it, and returns the first such request.

        ``input`` has the keys that the input in the request must have at least.
        """
        found = [
            request
            for request in self.permission_requests
            if request.tool == tool and request.outcome == outcome and _matches(input or {}, request.input)
        ]
        with_input = "" if input is None else f" with {dict(input)}"
        _hold(bool(found), f"expected a request for {tool}{with_input} that is {outcome}", self.permission_requests)
        return found[0]

    def assert_hook(self, event: str, times: int | None = None) -> list[HookCall]:
        """Fails unless a hook was called for this event, and returns those calls."""
        found = [call for call in self.hook_calls if call.event == event]
        held = bool(found) if times is None else len(found) == times
        wanted = "a call" if times is None else f"{times} calls"
        _hold(held, f"expected {wanted} of a hook for {event}", self.hook_calls)
        return found

    def summary(self) -> str:
        """A line for each frame, to read after a failure."""
        lines = [str(flaw) for flaw in self.flaws]
        for process in self.processes:
            ended = {"exit code": process.exit_code, "signal": process.signal}
            ends = [f"{name} {value}" for name, value in ended.items() if value is not None]
            lines.append(f"process {process.pid}: {', '.join(ends) or ('still runs' if process.running else 'ended')}")
            for frame in process.frames:
                arrow = "->" if frame.sender == "client" else "<-"
                lines.append(f"  {frame.at_ms:8.1f} ms {arrow} {frame.kind} {_gist(frame)}".rstrip())
        return "\n".join(lines)


def read_trace(report: Json) -> Trace:
    """A report of ``outrigger-sim``."""
    flaws = [Flaw(flaw["place"] or "", flaw["what"]) for flaw in report["flaws"]]
    return Trace([_process(process) for process in report["processes"]], flaws)


def _process(report: Json) -> Process:
    frames = [
        Frame(float(line["at_ms"]), line["from"], line["kind"], _object(line["frame"])) for line in report["lines"]
    ]
    ended = report["exit"]
    return Process(
        pid=report["pid"],
        arguments=report["arguments"],
        cwd=report["cwd"],
        running=report["running"],
        exit_code=ended["code"],
        signal=ended["signal"],
        frames=frames,
    )


def _tool_calls(process: Process, later: Sequence[Process]) -> Iterator[ToolCall]:
    results = {block.get("tool_use_id"): block for _, block in _blocks_of(process, "user", "tool_result")}
    # A call that this process left open may have its result in one that goes on with the session.
    for other in later:
        if _session(other) == _session(process):
            own = {block.get("id") for _, block in _blocks_of(other, "assistant", "tool_use")}
            for _, block in _blocks_of(other, "user", "tool_result"):
                if block.get("tool_use_id") not in own:
                    results.setdefault(block.get("tool_use_id"), block)
    for frame, block in _blocks_of(process, "assistant", "tool_use"):
        result = results.get(block["id"])
        yield ToolCall(
            id=block["id"],
            name=block["name"],
            input=_object(block.get("input")),
            parent=frame.data.get("parent_tool_use_id"),
            result=None if result is None else _text(result.get("content")),
            is_error=bool((result or {}).get("is_error")),
        )


def _session(process: Process) -> Any:
    told = (frame.data.get("session_id") for frame in process.frames if frame.sender == "cli")
    return next((session for session in told if session), None)


def _blocks_of(process: Process, kind: str, block_type: str) -> Iterator[tuple[Frame, Json]]:
    for frame in process.frames:
        if frame.sender == "cli" and frame.kind == kind:
            yield from ((frame, block) for block in _blocks(frame) if block.get("type") == block_type)


def _content(frame: Frame) -> Any:
    return _object(frame.data.get("message")).get("content")


def _blocks(frame: Frame) -> list[Json]:
    content = _content(frame)
    return [_object(block) for block in content] if isinstance(content, list) else []


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(_object(block).get("text", "")) for block in content)
    return "" if content is None else str(content)


def _object(value: Any) -> Json:
    return value if isinstance(value, Mapping) else {}


def _matches(pattern: Any, value: Any) -> bool:
    """Whether an object has the keys of the pattern at least, at every depth."""
    if isinstance(pattern, Mapping):
        return isinstance(value, Mapping) and all(
            key in value and _matches(item, value[key]) for key, item in pattern.items()
        )
    return bool(pattern == value)


def _gist(frame: Frame) -> str:
    if frame.kind in ("user", "assistant"):
        blocks = _blocks(frame)
        calls = [
            f"{block['name']} {dict(_object(block.get('input')))}"
            for block in blocks
            if block.get("type") == "tool_use"
        ]
        gist = "; ".join(calls) or _text(_content(frame)) or "".join(_text(block.get("content")) for block in blocks)
    elif frame.kind == "control_request/can_use_tool":
        request = _object(frame.data.get("request"))
        gist = f"{request.get('tool_name')} {request.get('input')}"
    elif frame.kind.startswith("control_response/"):
        response = _object(frame.data.get("response"))
        gist = str(response.get("error") or _object(response.get("response")).get("behavior") or "")
    else:
        gist = str(frame.data.get("result", ""))
    return gist if len(gist) <= 120 else f"{gist[:119]}…"


def _hold(condition: bool, expected: str, seen: Sequence[object]) -> None:
    # pytest shows the assertion of the test, not this line.
    __tracebackhide__ = True
    if not condition:
        there = "".join(f"\n  {item}" for item in seen) or " nothing"
        raise AssertionError(f"{expected}, but there was:{there}")
