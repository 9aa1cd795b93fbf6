"""The servers of bench/http_peers.py: how each is started for its best result, and one that runs in its own turns only."""
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from peer_turns import Unavailable  # noqa: E402
from server_process import ServerError, ServerProcess, cpu_seconds  # noqa: E402
from timed_engines import export_as, last_line  # noqa: E402

TITLES = {"bouquet": "Bouquet", "infinity-onnx": "Infinity (ONNX Runtime)", "infinity-torch": "Infinity (torch)",
          "llama-server": "llama-server"}
SECONDS_TO_BE_READY = 180
# Infinity tells a third party about itself unless asked not to. Nothing is looked up on the network.
INFINITY_ENVIRONMENT = {"INFINITY_ANONYMOUS_USAGE_STATS": "0", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1",
                        "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
INFINITY_ENGINES = {"infinity-onnx": "optimum", "infinity-torch": "torch"}
# As many requests under way as there are connections at most, or passages in two batches. Steps of 2,048 tokens were tried:
# 0.73 of the requests of 64 connections, 0.67 of the batches, as attention of a step is over all of its tokens.
LLAMA_SLOTS, LLAMA_STEP_TOKENS = 64, 512
VERSIONS = ("import importlib.metadata as m; "
            "print(', '.join(f'{n} {m.version(n)}' for n in ('infinity-emb', %r)))")


class Launch(NamedTuple):
    """How a server is started; `settings` are the flags that matter, as a result shows them."""
    title: str
    version: str
    settings: str
    command: List[str]
    ready_path: str
    environment: Dict[str, str]


def launch(name, model, exports, arguments):
    """Prepares what the server needs first. Unavailable: why it cannot be had."""
    if name == "bouquet":
        return bouquet(model, arguments.binaries / "bouquet")
    if name == "llama-server":
        return llama_server(model, exports, arguments.llama_server)
    return infinity(name, model, exports, arguments.python)


def output_of(command, what):
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=60)
    except OSError as error:
        raise Unavailable(f"{what} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{what} did not answer within a minute") from error
    if done.returncode != 0:
        raise Unavailable(f"{what}: {last_line(done.stderr) or f'exit code {done.returncode}'}")
    return (done.stdout + done.stderr).strip()


def bouquet(model, binary):
    settings = ["--dtype", "float32"]
    return Launch(TITLES["bouquet"], output_of([binary, "--version"], "bouquet").removeprefix("bouquet "), " ".join(settings),
                  [binary, "serve", model, "--host", "127.0.0.1", "--port", "{port}", "--log-level", "warning", *settings],
                  "/health/ready", {})


def bare_socket(model, binary, ids):
    """No server at all: the engine, and a socket (bench/engine_echo.cc)."""
    return Launch("the engine behind a bare socket", "", "", [binary, model, "{port}", ",".join(map(str, ids)), "dtype=float32"],
                  "/", {})


def infinity(name, model, exports, python):
    engine = INFINITY_ENGINES[name]
    runtime = {"optimum": "onnxruntime", "torch": "torch"}[engine]
    version = output_of([python, "-c", VERSIONS % runtime], "Infinity's environment").removeprefix("infinity-emb ")
    folder = export_as("infinity", python, model, exports) if engine == "optimum" else model
    settings = ["--engine", engine, "--dtype", "float32", "--pooling-method", "mean", "--batch-size", "32"]
    return Launch(TITLES[name], version, " ".join(settings),
                  [python, "-m", "infinity_emb.cli", "v2", "--model-id", folder,
                   "--served-model-name", model.name, "--host", "127.0.0.1", "--port", "{port}", "--url-prefix", "/v1",
                   "--device", "cpu", "--log-level", "error", *settings],
                  "/health", INFINITY_ENVIRONMENT)


def llama_server(model, exports, binary):
    built = ROOT / "build/llama.cpp/llama-server"
    binary = (binary or os.environ.get("BOUQUET_LLAMA_SERVER") or (str(built) if built.exists() else None)
              or shutil.which("llama-server"))
    if binary is None:
        raise Unavailable("not built by ./dev setup --llama-server, not in PATH, and BOUQUET_LLAMA_SERVER is not set")
    told = output_of([binary, "--version"], "llama-server").splitlines()
    version = next((line.removeprefix("version:").strip() for line in told if line.startswith("version:")), "unknown")
    threads = str(len(os.sched_getaffinity(0)))
    settings = ["--parallel", str(LLAMA_SLOTS), "--ctx-size", str(LLAMA_SLOTS * LLAMA_STEP_TOKENS),
                "--batch-size", str(LLAMA_STEP_TOKENS), "--ubatch-size", str(LLAMA_STEP_TOKENS), "--threads", threads]
    return Launch(TITLES["llama-server"], version, " ".join(settings),
                  [binary, "--model", export_as("gguf", sys.executable, model, exports) / "model.gguf", "--embedding",
                   "--host", "127.0.0.1", "--port", "{port}", *settings],
                  "/health", {})


def reason(printed):
    """The last exception of Python's in what a server printed, else its last line."""
    exceptions = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception): .*", printed, re.MULTILINE)
    return last_line(exceptions[-1] if exceptions else printed)


class PausedServer:
    """Runs from resume() to pause(), and else is stopped by the kernel, threads and all. `name` is what results say."""

    def __init__(self, start):
        """Unavailable: why it did not start, in its own words. It runs until the first pause()."""
        self.launch = start
        self.name = start.title
        self._output = tempfile.TemporaryFile("w+")
        try:
            self._process = ServerProcess(list(map(str, start.command)), ready_path=start.ready_path, output=self._output,
                                          seconds_to_be_ready=SECONDS_TO_BE_READY, environment=start.environment)
        except (ServerError, OSError) as error:
            self._output.seek(0)
            raise Unavailable(f"{error}: {reason(self._output.read())}".removesuffix(": ")) from error
        self.port, self.ready_seconds = self._process.port, self._process.ready_seconds

    def resume(self):
        os.killpg(self._process.pid, signal.SIGCONT)

    def pause(self):
        os.killpg(self._process.pid, signal.SIGSTOP)

    def cpu_seconds(self):
        return cpu_seconds(self._process.pid)

    def resident_mb(self):
        """Unavailable: it has ended."""
        try:
            return self._process.resident_mb()
        except (ServerError, OSError) as error:
            raise Unavailable(str(error)) from error

    def close(self):
        """Of others' servers the exit code is no matter, nor that one has ended already."""
        try:
            self.resume()
            self._process.stop()
        except (ServerError, ProcessLookupError):
            pass
        finally:
            self._output.close()


def start_and_rest(start, starts):
    """The server of the last of several starts, and {"ready_s": median, "resident_mb": median, a second after}."""
    server, ready, resident = None, [], []
    try:
        for _ in range(starts):
            if server:
                server.close()
            server = PausedServer(start)
            time.sleep(1)
            ready.append(server.ready_seconds)
            resident.append(server.resident_mb())
    except BaseException:
        if server:
            server.close()
        raise
    return server, {"ready_s": statistics.median(ready), "resident_mb": statistics.median(resident)}

