"""Rules about the source: each takes a project's root and gives back its problems, none when all is well."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.shape.reading import (
    Function,
    assigned,
    classes,
    defined,
    functions,
    imported,
    modules,
    named,
    package,
    tree,
)

PUBLIC_NAMES = 30
MAX_CONTEXT_MEMBERS = 13

BROAD_EXCEPTS = {
    "core/errors.py": "exception_raised_by",
    "mcp/stdio_session.py": "_answer",
    "mcp/streamable_http.py": "_sdk_response",
    "runtime/executor.py": "_run_with_timeout",
}
"""The places that may catch everything: other people's callbacks, a request's answer, and a tool with a bug."""

DOOR = "host/programs.py"
"""The one module that starts processes: no address is given to a browser elsewhere, and no secret to a program."""
GIT_DOOR = "host/files/git_repository.py"
"""The one module that starts git: on a folder of ours, with the objects of a repository and nothing else of it."""
_FINDERS = re.compile(
    r"find_programs?|which|Program|Popen|run|call|check_\w+|system|popen|exec\w*|spawn\w*|(?:run|start)_program"
    r"|(?:create_)?subprocess_(?:exec|shell)|open_process|run_process"
)
"""What finds a program by its name, or starts it."""
_ARCHIVE_MODULES = {"tarfile", "zipfile"}
_UNPACKERS = re.compile(r"(?:\w+\.)*extractall|shutil\.(?:unpack_archive|register_unpack_format)")
STARTS_ITS_OWN = {
    "fleet/batch_agent.py": {"asyncio.create_subprocess_exec"},
    "host/sandbox/processes/supervisor.py": {"os.fork"},
    "host/sandbox/processes/pre_exec.py": {"os.execvpe"},
    "host/confined_workers.py": {"os.fork"},
}
"""The modules beside the door that start processes, and how. A supervisor forks, and the child becomes what was
launched, behind the boundary that it has put around itself; a worker forks a child that executes nothing. A
batch starts the agents that its operator names, with the token in a file."""
_STARTERS = re.compile(
    r"os\.(?:fork|forkpty|system|popen|startfile|exec\w+|spawn\w+|posix_spawnp?)"
    r"|(?:\w+\.)*(?:create_subprocess_(?:exec|shell)|subprocess_(?:exec|shell)|open_process|run_process"
    r"|ProcessPoolExecutor|to_process)"
)
_STARTING_MODULES = {"subprocess", "multiprocessing", "pty", "webbrowser", "_posixsubprocess"}

_PRINTERS = re.compile(
    r"print|pprint|(?:rich\.)?print|(?:\w+\.)*Console|(?:typer\.|click\.)?s?echo|sys\.(?:__)?std(?:out|err)\S*write\w*"
)

POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
_SYSTEM_NAMES = re.compile(
    r"(?:os|fcntl|socket|select|signal|resource|ctypes)\."
    r"(?:O_PATH|O_TMPFILE|O_DIRECTORY|O_NOFOLLOW|memfd_create|MFD_\w+|pidfd_\w+|(?:get|set|list|remove)xattr|unshare"
    r"|setns|eventfd\w*|copy_file_range|splice|sendfile|sched_\w+|posix_\w+|prctl|prlimit|F_\w*LEASE|F_SETSIG|F_NOTIFY"
    r"|F_\w*PIPE_SZ|SO_PEERCRED|SCM_\w+|epoll|EPOLL\w*|signalfd|pidfd\w*|SIGRT\w+|SIGSTKFLT|SIGPWR|SIGKILL|SIGHUP"
    r"|SIGURG|SIGCHLD|SIGSTOP|SIGCONT|SIGUSR\d|SIGWINCH|geteuid|getuid|getegid|getgid|getgroups|chown|fchown|lchown"
    r"|fork\w*|setsid|setpgid|killpg|getpgid|uname|major|minor|makedev|mknod|mkfifo|openpty|CDLL)"
)
_HOLDERS = (
    ast.Call,
    ast.keyword,
    ast.Assign,
    ast.AnnAssign,
    ast.Compare,
    ast.Return,
    ast.BinOp,
    ast.JoinedStr,
    ast.List,
    ast.Tuple,
    ast.Set,
    ast.Dict,
    ast.arguments,
)
"""Code that holds a string, unlike prose: a docstring is a statement of its own."""
_SYSTEM_TREES = re.compile(r"(?:^|[\s'\"=])/(?:proc|sys|dev/shm|dev/fd)(?:/|$)")


def public_names(root: Path) -> list[str]:
    """Names of the package: few, each listed once and defined in the home it is said to have."""
    source = package(root) / "__init__.py"
    homes, listed = assigned(source, "_HOMES"), assigned(source, "__all__")
    assert isinstance(homes, dict)
    assert isinstance(listed, list)
    problems = [f"__all__ and _HOMES differ: {name}" for name in sorted(set(homes) ^ set(listed))]
    problems += [f"__all__ names {name} twice" for name in sorted(set(listed)) if listed.count(name) > 1]
    if len(set(listed)) > PUBLIC_NAMES:
        problems.append(f"{len(set(listed))} public names, at most {PUBLIC_NAMES}")
    for name, home in homes.items():
        module = package(root) / home.replace(".", "/")
        path = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
        if not path.is_file() or name not in defined(path):
            problems.append(f"{name} is not defined in {home}")
    return problems


def constants_set_twice(root: Path) -> list[str]:
    """Constants that a module sets twice: the second value would hold for the uses of the first, too."""
    problems = []
    for path in modules(package(root)):
        constants = Counter(
            name.id
            for node in tree(path).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            for name in ast.walk(target)
            if isinstance(name, ast.Name)
        )
        problems += [
            f"{named(root, path)}: {name} is set {count} times"
            for name, count in constants.items()
            if count > 1
        ]
    return problems


def context_members(root: Path) -> list[str]:
    """Members of the context: few, and all of them for every tool."""
    context = next(
        node for node in classes(package(root) / "core" / "context.py") if node.name == "Context"
    )
    members = [node for node in context.body if isinstance(node, ast.FunctionDef)]
    problems = [
        f"{member.name} may be None"
        for member in members
        if member.returns is not None and "| None" in ast.unparse(member.returns)
    ]
    if len(members) > MAX_CONTEXT_MEMBERS:
        problems.append(f"{len(members)} members, at most {MAX_CONTEXT_MEMBERS}")
    return problems


def broad_excepts(root: Path) -> list[str]:
    """`except Exception` beyond those listed; bare ones; `except BaseException` that does not raise again."""
    found: list[str] = []
    problems = []
    for path in modules(package(root)):
        for function in functions(path):
            for handler in _handlers(function):
                caught = _caught(handler)
                where = f"{named(root, path)}: {function.name}"
                if "Exception" in caught:
                    found.append(where)
                elif not caught or ("BaseException" in caught and not _raises_last(handler)):
                    problems.append(f"{where} swallows everything")
    listed = [f"{module}: {name}" for module, name in BROAD_EXCEPTS.items()]
    problems += [
        f"{where} is not listed" for where in found if where not in listed or found.count(where) > 1
    ]
    return problems + [f"{where} is listed and not there" for where in listed if where not in found]


def _handlers(function: Function) -> Iterator[ast.ExceptHandler]:
    """The handlers of a function itself: nested functions answer for their own."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ExceptHandler):
            yield node
        if not isinstance(node, Function):
            waiting += ast.iter_child_nodes(node)


def _caught(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return set()
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {ast.unparse(kind).rpartition(".")[2] for kind in kinds}


def _raises_last(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.body[-1], ast.Raise)


def next_steps(root: Path) -> list[str]:
    """Errors for the model that end without a next step.

    A `HostError` gets one where it is told, to a model or a person; a `UsageError` is for programmers.
    """
    kinds = {"ToolError"} | {
        each.name
        for each in classes(package(root) / "core" / "errors.py")
        if any(ast.unparse(base) == "ToolError" for base in each.bases)
    }
    return [
        f"{named(root, path)}:{node.lineno} {ast.unparse(node.func)} has no next step"
        for path in modules(package(root))
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in kinds
        and not _hint(node)
    ]


def _hint(call: ast.Call) -> bool:
    """Whether a hint is given that can be other than empty."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "hint"]
    return bool(given) and ast.unparse(given[0]) not in {"''", "None"}


def posix_outside_host(root: Path) -> list[str]:
    """POSIX-only modules imported anywhere but in host."""
    host = package(root) / "host"
    return [
        f"{named(root, path)} imports {name}"
        for path in modules(package(root))
        if not path.is_relative_to(host)
        for name in sorted(imported(path) & POSIX_ONLY)
    ]


def system_names_outside_host(root: Path) -> list[str]:
    """Names of one system (system calls, signals that only some have, `/proc`) anywhere but in host."""
    host = package(root) / "host"
    return [
        f"{named(root, path)}:{node.lineno} uses {found}"
        for path in modules(package(root))
        if not path.is_relative_to(host)
        for node in ast.walk(tree(path))
        if (found := _system_name(node))
    ]


def _system_name(node: ast.AST) -> str:
    """The system's own name that a piece of code has, if any; prose may speak of them."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        found = f"{node.value.id}.{node.attr}"
        return found if _SYSTEM_NAMES.fullmatch(found) else ""
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{each.name}" for each in node.names]
        return next(filter(_SYSTEM_NAMES.fullmatch, names), "")
    if isinstance(node, _HOLDERS):
        texts = [each.value for each in ast.iter_child_nodes(node) if isinstance(each, ast.Constant)]
        sends = isinstance(node, ast.Call) and _dotted(node.func) in {"os.kill", "signal.signal"}
        if sends and any(isinstance(each, int) and each for each in texts):
            return ast.unparse(node)
        return next((text for text in texts if isinstance(text, str) and _SYSTEM_TREES.search(text)), "")
    return ""


def _dotted(node: ast.expr) -> str:
    return (
        f"{node.value.id}.{node.attr}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        else ""
    )


def one_door(root: Path) -> list[str]:
    """Modules, other than the one for it, that start processes or could, a browser included."""
    problems = []
    for path in modules(package(root)):
        name = named(root, path)
        if name == DOOR:
            continue
        found = set(_starters(tree(path))) | {
            module for module in imported(path) if module in _STARTING_MODULES
        }
        problems += [f"{name} uses {each}" for each in sorted(found - STARTS_ITS_OWN.get(name, set()))]
        unused = STARTS_ITS_OWN.get(name, set()) - found
        problems += [f"{name} is listed for {each}, which it does not use" for each in sorted(unused)]
    return problems


def git_door(root: Path) -> list[str]:
    """Places, other than in the module for it, where git is found or started."""
    problems = []
    for path in modules(package(root)):
        if named(root, path) == GIT_DOOR:
            continue
        constants = {
            target.id: node.value
            for node in tree(path).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        problems += [
            f"{named(root, path)}:{node.lineno} starts git"
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Call)
            and _FINDERS.fullmatch(ast.unparse(node.func).rpartition(".")[2])
            and any(
                _names_git(each, constants) for each in (*node.args, *(key.value for key in node.keywords))
            )
        ]
    return problems


def _names_git(argument: ast.expr, constants: dict[str, ast.expr]) -> bool:
    """Whether an argument is, or begins with, the name of git; also by a constant of its module."""
    found = constants.get(argument.id, argument) if isinstance(argument, ast.Name) else argument
    if isinstance(found, ast.List | ast.Tuple) and found.elts:
        return _names_git(found.elts[0], constants)
    if isinstance(found, ast.Constant) and isinstance(found.value, str):
        return re.match(r"(?:\S*/)?git(?:[\s-]|$)", found.value) is not None
    return False


def archive_door(root: Path) -> list[str]:
    """Places where an archive is unpacked by a library, which decides itself where it writes."""
    return [
        f"{named(root, path)} uses {found}"
        for path in modules(package(root))
        for found in sorted(set(_attributes(tree(path))))
        if _UNPACKERS.fullmatch(found) or (found.endswith(".extract") and imported(path) & _ARCHIVE_MODULES)
    ]


def _starters(node: ast.AST) -> Iterator[str]:
    """What starts a process, by any name that a module could give it."""
    for text in _attributes(node):
        if (
            _STARTERS.fullmatch(text)
            and text != "handtools.host.sandbox.processes.running_process.run_process"
        ):
            yield text


def _attributes(node: ast.AST) -> Iterator[str]:
    """What a module uses of others, as `module.name`: where it imports it, and where it writes it out."""
    for each in ast.walk(node):
        if isinstance(each, ast.ImportFrom) and each.module:
            yield from (f"{each.module}.{alias.name}" for alias in each.names)
        elif isinstance(each, ast.Attribute):
            yield ast.unparse(each)


def cli_output(root: Path) -> list[str]:
    """Modules of the CLI, other than the one for it, that print past what makes hidden characters visible."""
    return [
        f"{named(root, path)} uses {ast.unparse(node.func)}"
        for path in modules(package(root) / "cli")
        if named(root, path) != "cli/terminal.py"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and _PRINTERS.fullmatch(ast.unparse(node.func))
    ]


def work_on_import(root: Path) -> list[str]:
    """Statements at the top of a module that do something when it is imported."""
    return [
        f"{named(root, path)}:{node.lineno} does something on import"
        for path in modules(package(root))
        for node in tree(path).body
        if not _only_defines(node)
    ]


def _only_defines(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test) or "__name__" in ast.unparse(node.test)
    if isinstance(node, ast.Try):
        # An optional module: `try: import fcntl`.
        parts = [
            *node.body,
            *node.orelse,
            *(statement for handler in node.handlers for statement in handler.body),
        ]
        return not node.finalbody and all(_only_defines(part) for part in parts)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return not _touches_the_machine(node)
    return isinstance(
        node, Function | ast.ClassDef | ast.Import | ast.ImportFrom | ast.AugAssign | ast.Pass
    )


def _touches_the_machine(node: ast.stmt) -> bool:
    calls = (call for call in ast.walk(node) if isinstance(call, ast.Call))
    names = {ast.unparse(call.func).rpartition(".")[2] for call in calls}
    return bool(names & {"open", "read_text", "read_bytes", "connect", "getenv", "Popen", "run", "urlopen"})
