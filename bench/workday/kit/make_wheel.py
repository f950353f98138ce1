"""`python3 make_wheel.py NAME VERSION FOLDER [FILE ...]`: a wheel without a build backend or a network.

Its module has `VERSION` and `greet()`, the command NAME prints the greeting, and each FILE lies in the package.
"""

import sys
import zipfile
from pathlib import Path


def make_wheel(name: str, version: str, folder: Path, files: list[str]) -> Path:
    """Write the wheel and give back its path."""
    info = f"{name}-{version}.dist-info"
    content = {
        f"{name}/__init__.py": (
            f"VERSION = {version!r}\n\n\ndef greet():\n    return 'hello from {name} {version}'\n\n\n"
            "def main():\n    print(greet())\n"
        ),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: kit\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    content |= {f"{name}/{file}": f"{file} of {name}\n" for file in files}
    record = [*(f"{path},," for path in content), f"{info}/RECORD,,"]
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in content.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", "\n".join(record) + "\n")
    return wheel


if __name__ == "__main__":
    make_wheel(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
