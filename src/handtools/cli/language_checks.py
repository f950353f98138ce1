"""Checks of language servers: which are here, in which version, and how to get the others."""

import os
from collections.abc import Iterator
from pathlib import Path

from handtools.cli.checks import Finding


def language_findings(root: Path) -> Iterator[Finding]:
    """Every server that we know how to use, the found ones first."""
    from handtools.host.commands.runners.choosing import choose
    from handtools.host.language.choosing import SWITCH
    from handtools.host.language.finding import UNCONFINED
    from handtools.host.language.local_language import LocalLanguage

    runner = choose(root=root).runner
    if not runner.confined:
        yield Finding("sandbox", "missing", UNCONFINED, "handtools doctor")
    # Nothing is kept: their versions are asked for, and no server is started.
    language = LocalLanguage(root, cache=root, runner=lambda: runner)
    for speaker in sorted(language.speakers(), key=lambda each: not each.version):
        languages = ", ".join(speaker.languages)
        if speaker.program and not speaker.version:
            told = f"{languages}: {speaker.program} is there, but does not run"
            yield Finding(speaker.name, "missing", told, speaker.install)
        elif speaker.program:
            yield Finding(speaker.name, "ok", f"{languages}: {speaker.version}", speaker.program)
        else:
            yield Finding(speaker.name, "missing", languages, speaker.install)
    if os.environ.get(SWITCH, "").lower() == "off":
        yield Finding("switch", "missing", f"{SWITCH} is off: no server is used", f"unset {SWITCH}")
