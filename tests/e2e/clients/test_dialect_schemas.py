"""The shapes of clients' tools that are kept as files are what the installed clients offer to a model."""

from typing import Any

import pytest

from tests.e2e.clients.client import Place
from tests.e2e.clients.scripted_model import ScriptedModel
from tests.e2e.clients.session import lay
from tests.e2e.clients.test_own_tools import CLIENTS, Installed, run_until_it_ends
from tests.e2e.clients.wires.shapes import Json, Reply
from tests.unit.core.dialects.published_shapes import client_tools, recorded

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
DIALECTS = {"claude": "claude_code", "codex": "codex", "gemini": "gemini_cli", "opencode": "opencode"}


class ListeningModel(ScriptedModel):
    """A model that ends at once, and keeps what it was offered."""

    def respond(self, path: str, body: Json) -> Reply:
        self.tools.update(client_tools(body.get("tools") or []))
        return super().respond(path, body)

    tools: dict[str, Any]


@pytest.fixture(params=[each for each in CLIENTS if each.name in DIALECTS], ids=lambda each: each.name)
def installed(request: pytest.FixtureRequest) -> Installed:
    if not request.param.client.folder.exists():
        pytest.skip("machine: the client is not installed, see .ci/coding-clients")
    return request.param


def test_the_kept_shapes_are_those_that_the_client_offers(installed, tmp_path):
    place, kept = Place(tmp_path), recorded(DIALECTS[installed.name])
    lay(place)
    model = ListeningModel([], "")
    model.tools = {}
    with model.serve():
        words, env = installed.client.launch(place, model.url)
        words = installed.alone(place, words)
        config = place.home / ".codex/config.toml"
        if config.exists():  # It offers its patch tool to models that it knows.
            config.write_text(config.read_text().replace('model = "m"', 'model = "gpt-5.5"'))
        whole = place.env | place.own_env | env | installed.env
        printed = run_until_it_ends([*installed.client.command, *words], whole, place)
    wanted = dict(kept["tools"])
    if "Ripgrep is not available" in printed:  # Gemini CLI then offers a `grep_search` of its own.
        del wanted["grep_search"]
    offered = {name: tool for name, tool in model.tools.items() if name in wanted}
    assert offered == wanted, f"{installed.client.version}, kept: {kept['version']}\n{printed[-2000:]}"
