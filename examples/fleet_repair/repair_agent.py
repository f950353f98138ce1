"""A scripted agent that repairs by trial: it changes one operator or number at a time until the test passes.

It knows no fix in advance. A bug that no such change mends, such as a missing line, stays: then it puts the module
back as it was.
"""

import io
import tokenize

SWAPS = {
    "<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "==": ("!=",), "!=": ("==",),
    "+": ("-", "*"), "-": ("+",), "*": ("+",), "and": ("or",), "or": ("and",),
}  # fmt: skip
MAX_TRIES = 40


async def repair(toolbox, task):
    """Mend the module that the task names; says how many changes were tried."""
    module, test = task.metadata["module"], task.metadata["test"]
    source = (await toolbox.call("bash", {"command": f"cat {module}"})).text.rpartition("Exit code")[0]
    tries = 0
    for candidate in candidates(source):
        if tries == MAX_TRIES:
            break
        tries += 1
        await toolbox.call("write", {"path": module, "content": candidate, "mode": "overwrite"})
        ran = await toolbox.call("bash", {"command": f"python3 -B {test}"})
        if ran.details["code"] == 0:
            return {"tries": tries, "mended": True}
    await toolbox.call("write", {"path": module, "content": source, "mode": "overwrite"})
    return {"tries": tries, "mended": False}


def candidates(source):
    """The source with one operator or number changed: operators first, as they are wrong more often."""
    found = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for token in found:
        for other in SWAPS.get(token.string, ()):
            yield _replaced(source, token, other)
    for token in found:
        if token.type == tokenize.NUMBER:
            for other in (int(token.string) - 1, int(token.string) + 1):
                yield _replaced(source, token, str(other))


def _replaced(source, token, other):
    lines = source.splitlines(keepends=True)
    row, line = token.start[0] - 1, token.line
    lines[row] = line[: token.start[1]] + other + line[token.end[1] :]
    return "".join(lines)
