"""`python3 make_package.py NAME FOLDER`: a source package that pip builds and installs without a network.

Its build backend lies in the package, so nothing has to be fetched; `pip install -e` works, too.
"""

import sys
from pathlib import Path

BACKEND = """
import os, sys, zipfile

NAME = "{name}"
INFO = NAME + "-1.0.dist-info"


def _wheel(folder, files):
    files = dict(files)
    files[INFO + "/METADATA"] = "Metadata-Version: 2.1\\nName: " + NAME + "\\nVersion: 1.0\\n"
    files[INFO + "/WHEEL"] = "Wheel-Version: 1.0\\nGenerator: kit\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    files[INFO + "/entry_points.txt"] = "[console_scripts]\\n" + NAME + " = " + NAME + ":main\\n"
    files[INFO + "/RECORD"] = "".join(path + ",,\\n" for path in [*files, INFO + "/RECORD"])
    name = NAME + "-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return name


def build_wheel(folder, settings=None, metadata=None):
    with open(os.path.join("src", NAME, "__init__.py")) as file:
        return _wheel(folder, {{NAME + "/__init__.py": file.read()}})


def build_editable(folder, settings=None, metadata=None):
    return _wheel(folder, {{NAME + ".pth": os.path.abspath("src") + "\\n"}})


def build_sdist(folder, settings=None):
    raise NotImplementedError
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "{name}"
version = "1.0"
"""


def make_package(name: str, folder: Path) -> None:
    """Write the package's files."""
    (folder / "src" / name).mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(PROJECT.format(name=name).lstrip())
    (folder / "backend.py").write_text(BACKEND.format(name=name).lstrip())
    module = f"def greet():\n    return 'hello from {name}'\n\n\ndef main():\n    print(greet())\n"
    (folder / "src" / name / "__init__.py").write_text(module)


if __name__ == "__main__":
    make_package(sys.argv[1], Path(sys.argv[2]))
