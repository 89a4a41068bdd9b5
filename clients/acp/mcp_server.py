"""A small MCP server: `python mcp_server.py` speaks on stdio, and `serve` over HTTP, with server-sent events or without."""

import json
import os
import queue
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NOTHING = {"type": "object", "properties": {}}
TOOLS = [
    {"name": "echo", "description": "Says it again", "inputSchema": TEXT},
    {"name": "told", "description": "What it was told in its environment or a header", "inputSchema": TEXT},
    {"name": "fail", "description": "Fails", "inputSchema": NOTHING},
    {"name": "ask", "description": "Asks the user by a form", "inputSchema": NOTHING},
    {"name": "visit", "description": "Has the user open an address", "inputSchema": NOTHING},
]
FORM = {
    "mode": "form",
    "message": "Where to?",
    "requestedSchema": {
        "type": "object",
        "properties": {"city": {"type": "string", "title": "City"}, "nights": {"type": "integer"}},
        "required": ["city"],
    },
}
URL = {"mode": "url", "message": "Please log in", "url": "https://example.org/login", "elicitationId": "login-1"}


def answer(message, told, ask):
    """The result of a request, given what the server was told and a way to ask the client."""
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "scenarios", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method != "tools/call":
        return {}
    name, arguments = params["name"], params.get("arguments", {})
    if name == "echo":
        return text(arguments["text"])
    if name == "told":
        return text(told(arguments["text"]))
    if name in ("ask", "visit"):
        return text(json.dumps(ask("elicitation/create", FORM if name == "ask" else URL)))
    return text("it failed") | {"isError": True}


def text(said):
    """A result of text."""
    return {"content": [{"type": "text", "text": said}]}


def reply(message, *how):
    """The answer to a request, or nothing for what wants none."""
    if "id" not in message or "method" not in message:
        return None
    return {"jsonrpc": "2.0", "id": message["id"], "result": answer(message, *how)}


def stdio():
    """Speaks on stdin and stdout, until nobody is there any more."""

    def write(message):
        print(json.dumps(message), flush=True)

    def ask(method, params):
        write({"jsonrpc": "2.0", "id": "question", "method": method, "params": params})
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("id") == "question":
                return message.get("result") or message["error"]
            if message.get("method") == "notifications/cancelled":
                return {"action": "withdrawn"}
        sys.exit()

    for line in sys.stdin:
        if said := reply(json.loads(line), lambda name: os.environ.get(name, ""), ask):
            write(said)


class Handler(BaseHTTPRequestHandler):
    """Answers each POST by itself, or, where there is a stream, on that."""

    protocol_version = "HTTP/1.1"
    stream = None

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path != "/sse":
            return self.finish_with(405)
        type(self).stream = queue.Queue()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.event("endpoint", "/messages")
        while (said := self.stream.get()) is not None:
            self.event("message", json.dumps(said))

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = reply(message, lambda name: self.headers.get(name, ""), lambda *_: {})
        if self.path == "/messages":
            self.stream.put(said) if said else None
            return self.finish_with(202)
        self.finish_with(200 if said else 202, json.dumps(said).encode() if said else b"")

    def do_DELETE(self):
        self.finish_with(200)

    def event(self, kind, data):
        self.wfile.write(f"event: {kind}\ndata: {data}\n\n".encode())
        self.wfile.flush()

    def finish_with(self, status, body=b""):
        self.send_response(status)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serve():
    """Serves on a port of its own, and says where: `/mcp` for streamable HTTP, `/sse` for the older way."""

    class Mine(Handler):
        stream = None

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_):
            """Those who ask may go away at any time."""

    server = Server(("127.0.0.1", 0), Mine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        if Mine.stream:
            Mine.stream.put(None)
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    stdio()
