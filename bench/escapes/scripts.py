"""Attempts and workloads: one small script each, with a few words about itself at its head."""

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Script:
    """A script from a file: `#!` names its interpreter, the next line says what it does."""

    family: str
    name: str
    says: str
    text: str
    seconds: float
    """After which it is ended."""
    pause: float
    """After which it is judged: some show only later that they got away."""
    terminal: bool
    """Whether it is about the terminal that the person sits at."""
    open_git: bool
    """Whether the policy lets it write to `.git`."""

    needs: tuple[str, ...]
    """Programs without which it says nothing."""

    @property
    def title(self) -> str:
        """As reports name it."""
        return f"{self.family}/{self.name}"

    @property
    def interpreter(self) -> str:
        """What runs it."""
        first = self.text.partition("\n")[0]
        return first.removeprefix("#!").strip() if first.startswith("#!") else "/bin/bash"


def load(path: Path) -> Script:
    """One script; settings are comments such as `# seconds: 1`."""
    text = path.read_text("utf-8")
    comments = [line[2:] for line in text.splitlines() if line.startswith("# ")]
    settings = dict(comment.split(": ", 1) for comment in comments if ": " in comment)
    return Script(
        family=path.parent.name,
        name=path.name,
        says=comments[0] if comments else path.name,
        text=text,
        seconds=float(settings.get("seconds", 10)),
        pause=float(settings.get("pause", 0)),
        terminal=settings.get("terminal") == "yes",
        open_git=settings.get("git") == "open",
        needs=tuple(settings.get("needs", "").split()),
    )


def below(folder: str) -> list[Script]:
    """Every script below a folder beside this file, by family and name."""
    return [load(path) for path in sorted((HERE / folder).rglob("*")) if path.is_file()]
