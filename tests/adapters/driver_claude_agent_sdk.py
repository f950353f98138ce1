"""Claude Agent SDK with the Claude Code that it brings, which speaks to a scripted model on loopback."""

import http.server
import json
import tempfile
import threading
import uuid
from contextlib import ExitStack, contextmanager

from claude_agent_sdk import ClaudeSDKClient, ResultMessage

from handtools.adapters.claude_agent_sdk import options, question
from tests.adapters.drivers import Said, Wanted

VERSION = "claude-agent-sdk"
PREFIX = "mcp__handtools__"
SERVED = ExitStack()


class ScriptedModel:
    """Anthropic's Messages on loopback: which step comes is known by how often the model has spoken."""

    def __init__(self, *steps, since=""):
        self.steps = steps
        self.since = since
        self.read = []

    def answer(self, body):
        if not any(one.get("name", "").startswith(PREFIX) for one in body.get("tools", [])):
            return "ok"
        self.read = body["messages"]
        begun = [n for n, one in enumerate(self.read) if self.since and self.since in json.dumps(one)]
        spoken = sum(one["role"] == "assistant" for one in self.read[max(begun, default=0) :])
        return self.steps[min(spoken, len(self.steps) - 1)]

    @contextmanager
    def served(self):
        """Serve it; yields the environment for Claude Code, with a home of its own."""
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                data = events(model.answer(body)) if "count_tokens" not in self.path else b"{}"
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield {
                "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}",
                "ANTHROPIC_API_KEY": "x",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_TELEMETRY": "1",
            }
        finally:
            server.shutdown()
            server.server_close()


def events(step):
    message = {
        # Claude Code takes messages of one id for parts of one: a resumed session would hold only one of them.
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    said = [("message_start", {"message": message})]
    for index, part in enumerate([step] if isinstance(step, str) else step):
        block, delta = spoken_block(part)
        said += [
            ("content_block_start", {"index": index, "content_block": block}),
            ("content_block_delta", {"index": index, "delta": delta}),
            ("content_block_stop", {"index": index}),
        ]
    stop = {"stop_reason": "end_turn" if isinstance(step, str) else "tool_use", "stop_sequence": None}
    said += [("message_delta", {"delta": stop, "usage": {"output_tokens": 1}}), ("message_stop", {})]
    return "".join(
        f"event: {name}\ndata: {json.dumps({'type': name} | value)}\n\n" for name, value in said
    ).encode()


def spoken_block(part):
    if isinstance(part, str):
        return {"type": "text", "text": ""}, {"type": "text_delta", "text": part}
    block = {"type": "tool_use", "id": part.id, "name": PREFIX + part.tool, "input": {}}
    args = part.args if isinstance(part.args, str) else json.dumps(dict(part.args))
    return block, {"type": "input_json_delta", "partial_json": args}


def scripted_model(*steps):
    """Serve a model until the process ends; return the environment with which Claude Code finds it."""
    return SERVED.enter_context(ScriptedModel(*steps).served())


async def run(box, model, home, prompt="go", **more):
    with model.served() as environment:
        chosen = options(
            box, model="m", cwd=home, env=environment | {"HOME": home, "IS_SANDBOX": "1"}, **more
        )
        async with ClaudeSDKClient(chosen) as client:
            if prompt:
                await client.query(prompt)
            ended = [one async for one in client.receive_response() if isinstance(one, ResultMessage)]
    return ended[-1]


def said(model):
    blocks = [
        one for message in model.read if isinstance(message["content"], list) for one in message["content"]
    ]
    # Claude Code writes results as they come; here they are in the order of the calls.
    called = [one["id"] for one in blocks if one["type"] == "tool_use"]
    results = [one for one in blocks if one["type"] == "tool_result"]
    return [result_said(one) for one in sorted(results, key=lambda one: called.index(one["tool_use_id"]))]


def result_said(result):
    content = result["content"]
    content = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "\n".join(one["text"] for one in content if one["type"] == "text")
    media = [one["source"]["media_type"] for one in content if "source" in one]
    return Said(text, bool(result.get("is_error")), media)


def session_of(conversation):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, conversation))


class Driver:
    limits = {
        "document": "claude-agent-sdk 0.2.182: Claude Code shows the model no documents of a tool's result.",
        "malformed JSON": "claude-agent-sdk 0.2.182: Claude Code parses arguments itself, and the model reads "
        "its words.",
    }

    def __init__(self):
        self.homes = {}

    async def run(self, box, *calls, conversation=""):
        model, home = ScriptedModel(calls, "done"), tempfile.mkdtemp()
        self.homes[conversation] = home
        more = {"session_id": session_of(conversation)} if conversation else {}
        ended = await run(box, model, home, **more)
        assert ended.result == "done", ended
        return said(model)

    async def go_on(self, box, *calls, conversation):
        # Claude Code closes the calls that the history left open and tells the model to retry; like a real one,
        # this model does so under new ids.
        again = [one._replace(id=f"{one.id}_again") for one in calls]
        model = ScriptedModel(again, "done", since="Please go on.")
        ended = await run(
            box, model, self.homes[conversation], "Please go on.", resume=session_of(conversation)
        )
        assert ended.result == "done", ended
        return said(model)[-len(calls) :]

    async def ask(self, box, call):
        home = tempfile.mkdtemp()
        ended = await run(box, ScriptedModel([call], "done"), home)
        asked = ended.deferred_tool_use
        assert asked, ended
        return [home, ended.session_id, list(call)], await question(box, asked)

    async def answer(self, box, paused, *, allow, args=None):
        home, session, call = paused[0], paused[1], Wanted(*paused[2])
        model = ScriptedModel([call], "done")
        ended = await run(
            box, model, home, "", resume=session, answers={call.id: {"allow": allow, "args": args}}
        )
        assert ended.result == "done", ended
        return said(model)

    def dump(self, paused):
        return json.dumps(paused).encode()

    def load(self, data):
        return json.loads(data)
