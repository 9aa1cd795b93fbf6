#!/usr/bin/env python3
"""The project's own rules, run as the test `tidy`: who may include whom, names, banned calls, lengths, leftovers.

  tidy.py [ROOT]    prints one line per violation: file:line: rule: what is wrong and what to do instead

What it does not see: macros that hide includes, calls built by token pasting, C++ that its brace counting misreads.
"""
import fnmatch
import posixpath
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Tuple

# ---------------------------------------------------------------------------------------------------------
# Who may include whom (ARCHITECTURE.md). Patterns of header paths; a component may always include itself, subject to
# INSIDE. Tests, fuzzers and benchmarks beside the code may also include `testing/`.

LAYERS: Dict[str, List[str]] = {
    "base": [],
    "model": ["base/*"],
    "text": ["base/*", "model/*", "proto/*"],
    "proto": [],
    "rose": ["base/*", "model/*"],
    "tulip": ["base/*", "model/*", "proto/*", "rose/engine.h", "rose/batch.h", "rose/step_result.h", "rose/lazy_tensor.h"],
    "ivy": ["base/*", "model/*", "text/*", "proto/*"],
    "client": ["base/*", "model/*", "proto/*"],
    "bench/load": ["base/*", "model/*", "client/*"],
    "cli": ["base/*", "model/*", "text/*", "ivy/*.h", "ivy/encode/*.h", "ivy/dispatch/*.h", "ivy/http/server.h",
            "tulip/core.h", "tulip/server.h", "rose/engine.h", "client/*.h"],
    "testing": ["*"],
    "tests": ["*"],
    "bench": ["*"],
}

# Named in cmake/component.cmake.
BUILT_ELSEWHERE = ("testing/fuzz_replay_main.cc",)

# Files that may include more than their component.
EXCEPTIONS: List[Tuple[str, List[str]]] = [
    ("ivy/dispatch/in_process_replica*", ["tulip/core.h", "tulip/sequence.h"]),
    # The one user of the load generator.
    ("cli/bench*", ["bench/load/*"]),
    # Its tests ask a real gateway.
    ("client/*_test.cc", ["ivy/*"]),
    # Shared by the golden tests beside it.
    ("rose/golden_cases.h", ["testing/*"]),
    # Tests of the seam between two components.
    ("ivy/dispatch/*replica_test.cc", ["tulip/*", "rose/*"]),
]

# Inside a component: files that match the first pattern must not include what matches the second.
INSIDE: List[Tuple[str, str]] = [
    ("ivy/api/*", "ivy/encode/*"), ("ivy/api/*", "ivy/handlers/*"), ("ivy/api/*", "ivy/http/*"),
    ("ivy/api/*", "ivy/dispatch/*"),
    ("ivy/encode/*", "ivy/api/*"), ("ivy/encode/*", "ivy/handlers/*"), ("ivy/encode/*", "ivy/http/*"),
    ("ivy/dispatch/*", "ivy/api/*"), ("ivy/dispatch/*", "ivy/handlers/*"), ("ivy/dispatch/*", "ivy/http/*"),
    ("ivy/dispatch/*", "ivy/encode/*"),
    ("ivy/http/*", "ivy/handlers/*"), ("ivy/http/*", "ivy/encode/*"), ("ivy/http/*", "ivy/dispatch/*"),
    ("ivy/http/*", "ivy/api/openai.h"), ("ivy/http/*", "ivy/api/tei.h"), ("ivy/http/*", "ivy/api/embed_*"),
    ("tulip/scheduler.*", "tulip/core.h"), ("tulip/scheduler.*", "tulip/admission.h"),
    ("tulip/scheduler.*", "tulip/serving_loop.h"), ("tulip/scheduler.*", "rose/engine.h"),
    ("tulip/scheduler.*", "rose/lazy_tensor.h"),
    ("rose/models/*", "rose/backend/cpu/*"), ("rose/layers/*", "rose/backend/cpu/*"),
    ("rose/heads/*", "rose/backend/cpu/*"), ("rose/engine.*", "rose/backend/cpu/*"),
    ("rose/models/*", "rose/backend/cuda/*"), ("rose/layers/*", "rose/backend/cuda/*"),
    ("rose/heads/*", "rose/backend/cuda/*"), ("rose/engine.*", "rose/backend/cuda/*"),
    ("rose/backend/cpu/*", "rose/backend/cuda/*"), ("rose/backend/cuda/*", "rose/backend/cpu/*"),
    ("rose/models/*", "rose/engine.h"), ("rose/layers/*", "rose/models/*"), ("rose/heads/*", "rose/models/*"),
    ("rose/layers/*", "rose/engine.h"), ("rose/heads/*", "rose/engine.h"),
    ("rose/backend/*", "rose/models/*"), ("rose/backend/*", "rose/layers/*"), ("rose/backend/*", "rose/heads/*"),
    ("rose/backend/*", "rose/engine.h"),
]

# Values that every part of ivy exchanges.
SHARED_INSIDE = ("ivy/encode/encode_request.h", "ivy/encode/text_request.h")

# What protoc writes.
PROTOC_HEADER = re.compile(r"proto/.*\.pb\.h$")

# Where gRPC ends.
GRPC = ["tulip/inference_service*", "tulip/server*", "tulip/message*", "ivy/dispatch/grpc_*", "client/grpc_*", "tests/*",
        "testing/*", "bench/[!l]*"]

# Other people's headers, and the only files that may name them.
THIRD_PARTY: Dict[str, List[str]] = {
    "boost/beast*": ["ivy/http/*", "client/*", "tests/*", "testing/*", "bench/[!l]*"],
    "boost/asio*": ["ivy/*", "client/*", "cli/*", "tests/*", "testing/*", "bench/*"],
    "prometheus/*": ["base/metrics.*"],
    "spdlog/*": ["base/log.*"],
    "simdjson.h": ["base/json.*"],
    "CLI/*": ["cli/*"],
    "grpc*": GRPC,
    "google/protobuf*": GRPC,
    "cuda*": ["rose/backend/cuda/*"],
    "cublas*": ["rose/backend/cuda/*"],
    "flashinfer/*": ["rose/backend/cuda/attention/*"],
    "oneapi/dnnl/*": ["rose/backend/cpu/*"],
    "dnnl*": ["rose/backend/cpu/*"],
    "immintrin.h": ["rose/backend/cpu/*", "text/*", "base/*", "ivy/api/*"],
}

# ---------------------------------------------------------------------------------------------------------
# Names and calls.

BANNED_NAME = re.compile(r"(?:^|_)(utils?|common|manager|helpers?|misc)(?:_|\.|/|$)")
BANNED_TYPE = re.compile(r"\b(?:class|struct|namespace|enum class)\s+\w*?(Utils?|Common|Manager|Helper|Misc)s?\b"
                         r"|\bnamespace\s+(?:\w+::)*(utils?|common|helpers?|misc)\b")
NAME_ADVICE = "name it after what its functions have in common"

TEST_PROGRAMS = ("text/print_ids.cc",)
# Of bench/ all but bench/load, which the product contains.
TEST_FILES = ("*_test.cc", "*_fuzz.cc", "*_bench.cc", "testing/*", "*/testing/*", "tests/*", "bench/[!l]*", *TEST_PROGRAMS)
# (pattern, what to use instead, files where it is allowed)
BANNED_CALLS: List[Tuple[str, str, Tuple[str, ...]]] = [
    (r"\bstd::c(out|err|log)\b", "log.h, or return a Status; only programs talk to the terminal",
     ("cli/*", *TEST_FILES)),
    (r"(?<![\w:.>])(?:std::)?f?printf\s*\(", "log.h, or fmt::print in programs",
     ("cli/*", "base/check.cc", *TEST_FILES)),
    (r"(?<![\w:.>])(?:std::)?s?rand\s*\(", "std::mt19937 with a seed that the test prints", ()),
    (r"(?<![\w:.>])(?:std::)?v?sn?printf\s*\(", "fmt::format", ()),
    (r"(?<![\w:.>])(?:std::)?(?:strcpy|strcat|strtok|gets)\s*\(", "std::string or std::string_view", ()),
    (r"(?<![\w:.>])(?:std::)?(?:ato[ifl]+|strto\w+|sto(?:i|l|ll|ul|ull|f|d|ld))\s*\(",
     "std::from_chars, which reports errors (JSON's range check needs to know too large from too small: strtod)",
     ("ivy/api/json_fault.cc", *TEST_FILES)),
    (r"\bstd::regex\b", "a hand-written matcher: std::regex recurses per character and can overflow the stack", ()),
    (r"\bstd::async\b", "a named thread with a queue, or the executor that is there", ()),
    (r"\.detach\s*\(\s*\)", "join: a detached thread outlives what it uses", ("cli/*",)),
    (r"\bsleep_(?:for|until)\b|(?<![\w:.>])u?sleep\s*\(",
     "a condition variable or a timer, so that stopping does not wait (the drain itself may)",
     ("ivy/gateway.cc", "ivy/http/server.cc", *TEST_FILES)),
    (r"(?<![\w:.>])assert\s*\(", "CHECK, which stays in release builds (a look at every byte may not)",
     ("text/staged_tokenizer.cc",)),
    (r"\bconst_cast\b", "a non-const path to the value",
     ("rose/backend/cpu/*", "rose/backend/cuda/attention/flashinfer_fa*_instance.cu",  # FlashInfer takes no const
      *TEST_FILES)),
    (r"\bsystem_clock::now\b|\bsteady_clock::now\b", "the injected Clock of base/clock.h",
     ("base/*", "cli/*", "ivy/http/*", "ivy/handlers/*", "rose/backend/cpu/worker_pool.cc",
      "ivy/dispatch/grpc_replica.cc", "tulip/inference_service.cc", "tulip/server.cc",
      "client/grpc_embed_client.cc",  # gRPC's deadlines
      *TEST_FILES)),
    (r"\bstd::(?:endl)\b", "'\\n'", ()),
    (r"(?<![\w:.>])(?:std::)?(?:exit|quick_exit)\s*\(", "return a Status up to main", ("cli/*", *TEST_FILES)),
    (r"(?<![\w:.>])(?:std::)?system\s*\(", "a library call", TEST_FILES),
]

LEFTOVER = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}{-])/(?:work|root|home|Users)/\w")
URL = re.compile(r"\bhttps?://([A-Za-z0-9.-]+)")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "0.0.0.0", "host", "example.com", "example.org")

MAX_COLUMNS = {".h": 100, ".cc": 100, ".cu": 100, ".cuh": 100, ".py": 130, ".sh": 130, ".cmake": 130, "CMakeLists.txt": 130,
               "dev": 130}
MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 600
MAX_TEST_FILE_LINES = 800
MAX_FILE_BYTES = 1_000_000
MAX_README_LINES = 60
GENERATED = re.compile(r"^(?://|#) (?:Generated|Written) by", re.MULTILINE)
TEXT_SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".inc", ".py", ".sh", ".cmake", ".txt", ".md", ".json", ".yml", ".yaml", ".lua", ""}


class Violation(NamedTuple):
    file: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.file}:{self.line}: {self.rule}: {self.message}"


# ---------------------------------------------------------------------------------------------------------
# Reading C++.

_TOKENS = re.compile(
    r'R"(?P<delimiter>[^()\\\s]{0,16})\((?s:.*?)\)(?P=delimiter)"'  # raw string
    r'|"(?:\\.|[^"\\\n])*"'                                         # string
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'"                         # character, not a digit separator
    r"|//[^\n]*"
    r"|/\*(?s:.*?)\*/")


def code_only(text: str, comments: bool = False) -> str:
    """`text` with the insides of literals blanked, and comments unless wanted; line structure kept."""
    def blank(match):
        found = match.group(0)
        if found.startswith("/"):
            return found if comments else re.sub(r"[^\n]", " ", found)
        return '"' + re.sub(r"[^\n]", " ", found[1:-1]) + '"'
    return _TOKENS.sub(blank, text)


def includes(text: str) -> Iterator[Tuple[int, str, str]]:
    """(line, '"' or '<', path) of each include directive."""
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if match:
            yield number, match.group(1), match.group(2)


def functions(code: str) -> Iterator[Tuple[int, int]]:
    """(first line, last line) of each function body, lambdas and local classes not counted apart."""
    stack: List[str] = []
    start_of_header = 0
    function_start = 0
    line_at = lambda offset: code.count("\n", 0, offset) + 1
    for match in re.finditer(r"[{};]|^[ \t]*#[^\n]*(?:\\\n[^\n]*)*", code, re.MULTILINE):
        token = match.group(0)
        if token == "{":
            if stack and stack[-1] != "scope":
                stack.append("block")
                continue
            header = code[start_of_header:match.start()]
            stack.append(kind_of_scope(header))
            if stack[-1] == "function":
                function_start = start_of_header + len(header) - len(header.lstrip())
        elif token == "}":
            kind = stack.pop() if stack else ""
            if kind == "function":
                yield line_at(function_start), line_at(match.start())
            elif kind == "initialiser":
                continue  # of a member or a variable: the header goes on behind it
        if not stack or stack[-1] == "scope":
            start_of_header = match.end()


def kind_of_scope(header: str) -> str:
    header = re.sub(r"^\s*(?:public|private|protected)\s*:", "", header.strip())
    header = re.sub(r"^template\s*<[^{};]*?>\s*(?=class|struct|[\w:]+ )", "", header)
    if re.match(r"(?:inline\s+)?namespace\b|(?:class|struct|union|enum)\b[^()]*$|extern\s*$|extern\s+\"", header):
        return "scope"
    if re.search(r"\)\s*(?:noexcept)?\s*:(?!:).*[\w>]$", header, re.DOTALL):
        return "initialiser"  # `A(int x) : x_(x), y_` before `{2}`
    is_function = re.search(r"\)[^()=]*$|\)\s*(?:const|noexcept|override|:).*$", header, re.DOTALL)
    return "function" if is_function else "initialiser"


# ---------------------------------------------------------------------------------------------------------
# Rules. Each takes the whole tree: {path: text}.

Tree = Dict[str, str]


def matches(path: str, patterns) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def is_cpp(path: str) -> bool:
    return is_header(path) or is_source(path)


def is_header(path: str) -> bool:
    return path.endswith((".h", ".cuh"))


def is_source(path: str) -> bool:
    return path.endswith((".cc", ".cu"))


def is_test(path: str) -> bool:
    return matches(path, TEST_FILES)


def component_of(path: str) -> str:
    """The row of LAYERS that holds for `path`."""
    return "bench/load" if path.startswith("bench/load/") else path.split("/")[0]


def check_layers(tree: Tree) -> Iterator[Violation]:
    for path, text in tree.items():
        component = component_of(path)
        if not is_cpp(path) or component not in LAYERS:
            continue
        allowed = LAYERS[component] + [component + "/*"]
        for pattern, more in EXCEPTIONS:
            if fnmatch.fnmatchcase(path, pattern):
                allowed += more
        if is_test(path):
            allowed.append("testing/*")
        for number, kind, target in includes(text):
            if kind == "<":
                for pattern, users in THIRD_PARTY.items():
                    if fnmatch.fnmatchcase(target, pattern) and not matches(path, users):
                        yield Violation(path, number, "layers", f"<{target}> is visible only in {', '.join(users)}")
                continue
            if target not in tree and not PROTOC_HEADER.match(target):
                yield Violation(path, number, "includes", f'"{target}" is not a path from the root of the project')
            elif not matches(target, allowed):
                yield Violation(path, number, "layers", f"{component} must not include {target}")
            for pattern, forbidden in INSIDE:
                if fnmatch.fnmatchcase(path, pattern) and fnmatch.fnmatchcase(target, forbidden) \
                        and target not in SHARED_INSIDE and not is_test(path):
                    yield Violation(path, number, "layers", f"{pattern} must not include {target}")


def check_cmake(tree: Tree) -> Iterator[Violation]:
    """DEPS of libraries keep to the layers; every source is listed."""
    owner: Dict[str, str] = {}
    libraries = []
    for path, text in tree.items():
        if path.endswith("CMakeLists.txt") and "/" in path:
            text = re.sub(r"#[^\n]*", "", text)
            for match in re.finditer(r"bouquet_library\(\s*(\w+)([^)]*)\)", text):
                owner[match.group(1)] = component_of(path)
                deps = re.search(r"\bDEPS\s+((?:(?!LIBS|PRIVATE_LIBS|SOURCES)\S+\s*)*)", match.group(2))
                names = [dep for dep in (deps.group(1).split() if deps else []) if not dep.startswith("${")]
                libraries.append((path, text.count("\n", 0, match.start()) + 1, match.group(1), names))
    for path, number, name, deps in libraries:
        component = component_of(path)
        allowed = {component_of(pattern) for pattern in LAYERS.get(component, ["*"])} | {component}
        if name.endswith("in_process_replica") or name.endswith("in_process"):
            allowed.add("tulip")
        for dep in deps:
            if "*" not in allowed and owner.get(dep, dep) not in allowed:
                yield Violation(path, number, "layers", f"{name} must not depend on {dep}")
    listed = set()
    for path, text in tree.items():
        if path.endswith("CMakeLists.txt"):
            folder = posixpath.dirname(path)
            listed.update(posixpath.normpath(posixpath.join(folder, source))
                          for source in re.findall(r"[\w./-]+\.c[cu]\b", re.sub(r"#[^\n]*", "", text)))
    for path in tree:
        if is_source(path) and path.split("/")[0] in LAYERS and path not in listed and path not in BUILT_ELSEWHERE:
            yield Violation(path, 1, "cmake", "is listed in no CMakeLists.txt")


def check_headers(tree: Tree) -> Iterator[Violation]:
    """A header is guarded, and its .cc or .cu includes it first, which proves that it compiles alone."""
    for path, text in tree.items():
        if is_header(path) and not re.search(r"^#pragma once$", text, re.MULTILINE):
            yield Violation(path, 1, "headers", "has no `#pragma once`")
        if is_header(path):
            for number, line in enumerate(code_only(text).splitlines(), 1):
                if re.match(r"\s*using\s+namespace\b", line):
                    yield Violation(path, number, "headers", "`using namespace` in a header: name what is used")
        if is_source(path):
            header = path[:-3] + ".h"
            if header in tree:
                first = next((target for _, _, target in includes(text)), None)
                if first != header:
                    yield Violation(path, 1, "headers", f'must include "{header}" first')


def check_names(tree: Tree) -> Iterator[Violation]:
    for path, text in tree.items():
        match = BANNED_NAME.search(path.lower())
        if match:
            yield Violation(path, 1, "names", f"'{match.group(1)}' says nothing: {NAME_ADVICE}")
        if is_cpp(path):
            for number, line in enumerate(code_only(text).splitlines(), 1):
                if BANNED_TYPE.search(line):
                    yield Violation(path, number, "names", f"Utils, Common, Manager, Helper, Misc: {NAME_ADVICE}")


def check_calls(tree: Tree) -> Iterator[Violation]:
    compiled = [(re.compile(pattern), instead, allowed) for pattern, instead, allowed in BANNED_CALLS]
    for path, text in tree.items():
        if not is_cpp(path):
            continue
        for number, line in enumerate(code_only(text).splitlines(), 1):
            for pattern, instead, allowed in compiled:
                match = pattern.search(line)
                if match and not matches(path, allowed):
                    yield Violation(path, number, "calls", f"{match.group(0).strip()} is banned: use {instead}")


def check_lengths(tree: Tree) -> Iterator[Violation]:
    for path, text in tree.items():
        name = path.rsplit("/", 1)[-1]
        limit = MAX_COLUMNS.get(name) or MAX_COLUMNS.get(Path(path).suffix)
        lines = text.splitlines()
        if limit and not GENERATED.search(text[:400]) and name != "apt-packages.txt":
            # Text within literals, such as JSON in a test, may be wider: it cannot be broken.
            for number, line in enumerate(code_only(text, comments=True).splitlines() if is_cpp(path) else lines, 1):
                line = line.rstrip(' ",;)')
                if len(line) > limit and not re.match(r"\s*(?://|#)?\s*\S+$", line):
                    yield Violation(path, number, "lengths", f"{len(line)} columns, limit {limit}")
        if name == "README.md" and "/" in path and len(lines) > MAX_README_LINES:
            yield Violation(path, 1, "lengths", f"a component's README is one screen: {len(lines)} lines, "
                                                f"limit {MAX_README_LINES}")
        if not is_cpp(path) or GENERATED.search(text[:400]):
            continue
        most = MAX_TEST_FILE_LINES if is_test(path) else MAX_FILE_LINES
        if len(lines) > most:
            yield Violation(path, 1, "lengths", f"{len(lines)} lines, limit {most}: split it by idea")
        for first, last in functions(code_only(text)):
            if last - first + 1 > MAX_FUNCTION_LINES:
                yield Violation(path, first, "lengths", f"function of {last - first + 1} lines, limit "
                                                        f"{MAX_FUNCTION_LINES}: move work into named parts")


def check_leftovers(tree: Tree) -> Iterator[Violation]:
    hosts: Dict[str, Tuple[str, int]] = {}
    for path, text in tree.items():
        if path == "tools/tidy_test.py":  # names what it looks for
            continue
        for number, line in enumerate(text.splitlines(), 1):
            match = LEFTOVER.search(line)
            if match:
                yield Violation(path, number, "leftovers", f"{match.group(0)}: do it, or open an issue")
            if MACHINE_PATH.search(line) and path != "tools/tidy.py":
                yield Violation(path, number, "leftovers", "path of one machine")
            for host in URL.findall(line):
                if host in LOCAL_HOSTS or "." not in host:
                    continue
                first = hosts.setdefault(host, (path, number))
                if first[0] != path:
                    yield Violation(path, number, "hosts", f"{host} is named in {first[0]} already: one file at most")


RULES = (check_layers, check_cmake, check_headers, check_names, check_calls, check_lengths, check_leftovers)


# ---------------------------------------------------------------------------------------------------------

def read_tree(root: Path) -> Tuple[Tree, List[Violation]]:
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                            capture_output=True, check=True).stdout.decode().split("\0")
    tree: Tree = {}
    found: List[Violation] = []
    for path in sorted(filter(None, listed)):
        file = root / path
        if not file.is_file():
            continue
        size = file.stat().st_size
        if size > MAX_FILE_BYTES:
            found.append(Violation(path, 1, "size", f"{size} bytes, limit {MAX_FILE_BYTES}"))
        elif file.suffix in TEXT_SUFFIXES and "/corpus/" not in path:
            try:
                tree[path] = file.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
    return tree, found


def main(arguments: List[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[1]
    tree, found = read_tree(root)
    for rule in RULES:
        found.extend(rule(tree))
    for violation in sorted(set(found)):
        print(violation)
    print(f"tidy: {len(tree)} files, {len(set(found))} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
