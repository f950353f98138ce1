"""Hooks of MkDocs: pages of the repository's root stand in the site too, and nothing is loaded from elsewhere.

Sources keep the links that work where they lie; a link to anything else, such as an example, becomes its path.
Decision 36.
"""  # noqa: INP001 - MkDocs loads it by its path

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
ROOT_PAGES = ("README.md", "ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md", "AGENTS.md")
PLACE = "project/"
"""Where in the site the pages of the root stand."""
WORKERS_FROM_DISK = ROOT / ".ci/site-environment/npm/node_modules/iframe-worker/shim/index.js"
WORKERS_FROM_SERVER = "https://unpkg.com/iframe-worker/shim"
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the root, and the script that search needs where pages are read from disk."""
    script = WORKERS_FROM_DISK.read_text("utf-8")
    files.append(File.generated(config, "assets/iframe-worker.js", content=script))
    for name in ROOT_PAGES:
        files.append(File.generated(config, PLACE + name, content=(ROOT / name).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links that leave their folder into links of the site."""
    where = page.file.src_uri
    source = where.removeprefix(PLACE) if where.startswith(PLACE) else f"docs/{where}"

    def turned(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if not (ROOT / path).exists():
            return link[0]  # broken, which the build says; or no link at all
        if path in ROOT_PAGES:
            path = f"docs/{PLACE}{path}"
        if not path.startswith("docs/") or not path.endswith((".md", ".png", ".svg", ".gif")):
            return f"{text} (`{path}`)"
        return f"[{text}]({posixpath.relpath(path, posixpath.dirname(f'docs/{where}'))}{anchor})"

    return _LINK.sub(turned, markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Load that script from beside the pages."""
    here = posixpath.relpath("assets/iframe-worker.js", posixpath.dirname(page.file.dest_uri) or ".")
    return output.replace(WORKERS_FROM_SERVER, here)


def on_post_template(output_content: str, **_: Any) -> str:
    """Do so in the page for what is not found, too."""
    return output_content.replace(WORKERS_FROM_SERVER, "assets/iframe-worker.js")
