"""Make small repair tasks, modules with one bug and a test each: `python make_tasks.py FOLDER [COUNT [SEED]]`.

Everything follows from the seed. A bug is kept only if the test passes without it and fails with it.
"""

import json
import random
import re
import sys
from pathlib import Path

# Of each family: the source of a function NAME with constants A < B, bugs (kind, right, wrong), arguments to test.
FAMILIES = (
    (
        "clamp",
        (
            "def NAME(value):\n    if value < A:\n        return A\n"
            "    if value > B:\n        return B\n    return value\n"
        ),
        (
            ("comparison", "value < A", "value > A"),
            ("comparison", "value > B", "value < B"),
            ("constant", "return A", "return A + 1"),
            ("missing", "    if value > B:\n        return B\n", ""),
        ),
        ("(0,)", "(A,)", "(A + 1,)", "(B,)", "(B + 50,)", "(-7,)"),
    ),
    (
        "count_between",
        (
            "def NAME(numbers):\n    count = 0\n    for each in numbers:\n        if A <= each and each < B:\n"
            "            count = count + 1\n    return count\n"
        ),
        (
            ("comparison", "A <= each", "A < each"),
            ("comparison", "each < B", "each <= B"),
            ("boolean", " and ", " or "),
            ("constant", "count = 0", "count = 1"),
            ("arithmetic", "count + 1", "count - 1"),
        ),
        ("([A, B],)", "([],)", "([A, A + 1, B - 1, B, B + 1],)", "([0, 1, 2],)"),
    ),
    (
        "weighted_sum",
        (
            "def NAME(pairs):\n    total = 0\n    for weight, value in pairs:\n"
            "        total = total + weight * value\n    return total * A + B\n"
        ),
        (
            ("arithmetic", "total + weight", "total - weight"),
            ("arithmetic", "weight * value", "weight + value"),
            ("arithmetic", "A + B", "A - B"),
            ("missing", "        total = total + weight * value\n", "        pass\n"),
        ),
        ("([(1, 2), (3, 4)],)", "([],)", "([(5, 5)],)"),
    ),
    (
        "is_rising",
        (
            "def NAME(numbers):\n    for index in range(1, len(numbers)):\n"
            "        if numbers[index] - numbers[index - 1] < A:\n            return False\n    return True\n"
        ),
        (
            ("comparison", " < A", " <= A"),
            ("arithmetic", "numbers[index] - numbers", "numbers[index] + numbers"),
            ("constant", "range(1", "range(2"),
        ),
        ("([0, A, 2 * A],)", "([0, A - 1],)", "([],)", "([5, 4, 4 + A],)", "([9],)"),
    ),
    (
        "page_of",
        "def NAME(items, page):\n    first = (page - 1) * A\n    last = first + A\n    return items[first:last]\n",
        (
            ("constant", "page - 1", "page - 2"),
            ("arithmetic", "first + A", "first - A"),
            ("arithmetic", "(page - 1)", "(page + 1)"),
            ("missing", "    return items[first:last]\n", "    items[first:last]\n"),
        ),
        ("(list(range(3 * A)), 1)", "(list(range(3 * A)), 2)", "(list(range(A + 1)), 2)"),
    ),
    (
        "leap_like",
        "def NAME(year):\n    return year % A == 0 and (year % B != 0 or year % (A * B) == 0)\n",
        (
            ("boolean", " and ", " or "),
            ("comparison", "year % B != 0", "year % B == 0"),
            ("comparison", "year % A == 0", "year % A != 0"),
        ),
        ("(0,)", "(A,)", "(B,)", "(A * B,)", "(2 * A * B + 1,)", "(3 * A,)"),
    ),
    (
        "longest_run",
        (
            "def NAME(text):\n    best = 0\n    run = 0\n    for index in range(len(text)):\n"
            "        if index > 0 and text[index] == text[index - 1]:\n            run = run + 1\n"
            "        else:\n            run = 1\n        best = max(best, run)\n    return best + A\n"
        ),
        (
            ("comparison", "text[index] == text", "text[index] != text"),
            ("constant", "run = 1\n", "run = 0\n"),
            ("arithmetic", "best + A", "best - A"),
            ("missing", "        best = max(best, run)\n", "        best = run\n"),
        ),
        ("('',)", "('aab',)", "('abbbc',)", "('aaaa',)", "('abc',)"),
    ),
    (
        "price",
        (
            "def NAME(amount, member):\n    cost = amount * B\n    if amount >= A and member:\n"
            "        cost = cost - amount\n    return cost\n"
        ),
        (
            ("comparison", "amount >= A", "amount > A"),
            ("boolean", " and ", " or "),
            ("arithmetic", "cost - amount", "cost + amount"),
            ("missing", "    if amount >= A and member:\n        cost = cost - amount\n", ""),
        ),
        ("(A, True)", "(A, False)", "(A - 1, True)", "(A + 1, True)", "(0, True)"),
    ),
)


def make_task(number: int, chance: random.Random) -> dict[str, object]:
    """Make a task; tries bugs until one is caught by its test."""
    while True:
        family, source, bugs, arguments = chance.choice(FAMILIES)
        low = chance.randint(2, 9)
        values = {"A": low, "B": low + chance.randint(2, 20)}
        name = f"{family}_{number:03}"
        kind, right, wrong = chance.choice(bugs)
        whole, broken = (_filled(text, name, values) for text in (source, source.replace(right, wrong, 1)))
        cases = [eval(_filled(each, name, values)) for each in arguments]  # noqa: S307 - written above
        test = f"from {name} import {name}\n\n" + "".join(
            f"assert {name}{each!r} == {_run(whole, name, each)!r}, {each!r}\n" for each in cases
        )
        if any(_run(whole, name, each) != _run(broken, name, each) for each in cases):
            break
    module, tests = f"{name}.py", f"test_{name}.py"
    return {
        "id": f"{name}-{kind}",
        "prompt": f"{tests} fails. Find the bug in {module} and mend it.",
        "files": {module: broken, tests: test},
        "score": f"python3 -B {tests}",
        "score_files": {tests: test},
        "metadata": {"module": module, "test": tests},
    }


def _filled(text: str, name: str, values: dict[str, int]) -> str:
    """The text with its name and constants in place."""
    filled = re.sub(r"\b[AB]\b", lambda found: str(values[found[0]]), text)
    return filled.replace("NAME", name)


def _run(source: str, name: str, arguments: tuple[object, ...]) -> object:
    scope: dict[str, object] = {}
    exec(source, scope)  # noqa: S102 - written above
    try:
        return scope[name](*arguments)  # type: ignore[operator]
    except (IndexError, TypeError) as failure:
        return repr(failure)


def main(folder: str, count: str = "200", seed: str = "22") -> None:
    """Write `tasks.jsonl`, and the folder `template` that all workspaces begin with."""
    chance, place = random.Random(int(seed)), Path(folder)  # noqa: S311 - no secret
    (place / "template").mkdir(parents=True, exist_ok=True)
    (place / "template" / "README.md").write_text("Run a test with `python3 -B test_NAME.py`.\n")
    tasks = [make_task(number, chance) for number in range(int(count))]
    (place / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))


if __name__ == "__main__":
    main(*sys.argv[1:])
