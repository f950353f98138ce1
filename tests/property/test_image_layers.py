"""Layers of images held against a dictionary of paths: what a layer hides is gone, what it brings is there."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.fleet.image_layers import (
    OPAQUE_NAME,
    WHITEOUT_PREFIX,
    ImageNode,
    ImageTree,
    walk_image_nodes,
)

FOLDERS = ("", "a", "b", "a/c")
NAMES = ("a", "b", "c", "x")
Layer = list[tuple[str, ImageNode]]
Model = dict[str, str | None]
"""Files with their content, folders with None."""


@st.composite
def layers(draw: st.DrawFn) -> list[Layer]:
    """Layers as engines write them: each path once, with its folders before it, whiteouts anywhere."""
    made: list[Layer] = []
    for number in range(draw(st.integers(1, 4))):
        entries: dict[str, ImageNode] = {}
        hidden: Layer = []
        for _ in range(draw(st.integers(0, 6))):
            above, name = draw(st.sampled_from(FOLDERS)), draw(st.sampled_from(NAMES))
            path = f"{above}/{name}" if above else name
            kind = draw(st.sampled_from(["file", "folder", "whiteout", "opaque"]))
            if kind == "whiteout":
                hidden.append((f"{above}/{WHITEOUT_PREFIX}{name}", ImageNode("file")))
            elif kind == "opaque":
                hidden.append((f"{above}/{OPAQUE_NAME}", ImageNode("file")))
            elif _fits(entries, path):
                for folder in _folders_of(path):
                    entries.setdefault(folder, ImageNode("folder", 0o755))
                content = f"{number}:{path}"
                entries[path] = (
                    ImageNode("file", 0o644, content=content)
                    if kind == "file"
                    else ImageNode("folder", 0o755)
                )
        layer = list(entries.items())
        for each in hidden:
            layer.insert(draw(st.integers(0, len(layer))), each)
        made.append(layer)
    return made


def _folders_of(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def _fits(entries: dict[str, ImageNode], path: str) -> bool:
    """Whether a path can be added to a layer: it is new, and what is above it is no file."""
    return path not in entries and all(
        each not in entries or entries[each].kind == "folder" for each in _folders_of(path)
    )


def _modelled(all_layers: list[Layer]) -> Model:
    model: Model = {}
    for layer in all_layers:
        for marked, _ in layer:
            above, _, name = marked.strip("/").rpartition("/")
            if name == OPAQUE_NAME:
                model = {path: data for path, data in model.items() if not _is_below(path, above)}
            elif name.startswith(WHITEOUT_PREFIX):
                gone = f"{above}/{name.removeprefix(WHITEOUT_PREFIX)}".strip("/")
                model = {
                    path: data for path, data in model.items() if path != gone and not _is_below(path, gone)
                }
        for added, node in layer:
            if WHITEOUT_PREFIX in added:
                continue
            if not (node.kind == "folder" and model.get(added, "") is None):
                model = {path: data for path, data in model.items() if not _is_below(path, added)}
            model[added] = None if node.kind == "folder" else node.content
    return model


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/") if folder else True


@given(layers())
def test_layers_give_what_a_dictionary_of_paths_gives(all_layers: list[Layer]) -> None:
    tree = ImageTree()
    for layer in all_layers:
        tree.apply_layer(layer)
    found = {
        path: node.content if node.kind == "file" else None for path, node in walk_image_nodes(tree.root)
    }
    assert found == _modelled(all_layers)
