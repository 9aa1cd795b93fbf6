"""The descriptions of all packages that this machine's package index knows."""
import random
import shutil
import subprocess
from typing import List, NamedTuple


class Package(NamedTuple):
    name: str
    text: str


def read_descriptions() -> List[Package]:
    """Each description once, in an order that is random but the same every time, so that any part is a fair sample."""
    packages = parse(dump())
    if not packages and shutil.which("apt-get"):
        print("demo: the package index is empty; asking apt-get for it (about 10 s)", flush=True)
        sudo = ["sudo"] if shutil.which("sudo") else []
        subprocess.run([*sudo, "apt-get", "-q", "update"], check=False, stdout=subprocess.DEVNULL)
        packages = parse(dump())
    if not packages:
        with open("/var/lib/dpkg/status", encoding="utf-8", errors="replace") as installed:
            packages = parse(installed.read())
    random.Random(1).shuffle(packages)
    return packages


def dump() -> str:
    return subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=True).stdout.decode(errors="replace")


def parse(text: str) -> List[Package]:
    """Name and one-line description of each paragraph; one package for each description."""
    found = {}
    name = ""
    for line in text.split("\n"):
        if line.startswith("Package: "):
            name = line[9:]
        elif line.startswith(("Description: ", "Description-en: ")):
            description = line.partition(": ")[2].strip()
            if description and name:
                # The shortest name of several is the program; others are its libraries and data.
                if description not in found or len(name) < len(found[description]):
                    found[description] = name
    return [Package(name, description) for description, name in found.items()]
