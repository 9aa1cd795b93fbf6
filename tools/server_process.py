"""A server as a child process, for the demo, the benchmarks and the tests. Needs Python's own library only."""
import http.client
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

SECONDS_TO_BE_READY = 60
SECONDS_TO_STOP = 60


class ServerError(Exception):
    """The server did not start, or did not stop as it should."""


def free_port(preferred=0):
    """`preferred` when it is free, else any free port."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return probe.getsockname()[1]
            except OSError:
                continue
    raise ServerError("no free port")


def cpu_seconds(pid):
    """Of all threads that the process ever had, to a hundredth."""
    # After the name, which may hold anything.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class ServerProcess:
    """Runs `command`, in which {port} stands for the port, until `ready_path` is answered with 200. What it prints goes to
    the file `output` if there is one; `environment` is added to that of this process.

    As a context manager it stops the server at the end, and raises ServerError unless its exit code was 0.
    """

    def __init__(self, command, port=None, ready_path="/health/ready", seconds_to_be_ready=SECONDS_TO_BE_READY, output=None,
                 environment=None):
        self.port = free_port() if port is None else port
        self.url = f"http://127.0.0.1:{self.port}"
        self._name = Path(command[0]).name
        self._ready_path, self._seconds_to_be_ready = ready_path, seconds_to_be_ready
        started = time.monotonic()
        # A group of its own, so that Ctrl-C reaches only the caller, which then stops the server in order.
        self._process = subprocess.Popen([part.replace("{port}", str(self.port)) for part in command],
                                         start_new_session=True, stdout=output, stderr=output,
                                         env={**os.environ, **(environment or {})})
        try:
            self._wait_until_ready(started)
        except BaseException:
            self._process.kill()
            raise
        self.ready_seconds = time.monotonic() - started

    @classmethod
    def serving(cls, bouquet, model, port=None):
        """`bouquet serve` with a quiet log."""
        return cls([str(bouquet), "serve", str(model), "--port", "{port}", "--log-level", "warning"], port)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        code = self.stop()
        if code != 0 and kind is None:
            raise ServerError(f"{self._name} ended with exit code {code}")

    @property
    def pid(self):
        return self._process.pid

    def resident_mb(self):
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1e3
        raise ServerError(f"{self._name} has ended")

    def send_signal(self, number):
        self._process.send_signal(number)

    def stop(self):
        """Its exit code after SIGTERM."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(timeout=SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise ServerError(f"{self._name} did not stop within {SECONDS_TO_STOP} s of SIGTERM") from None

    def _wait_until_ready(self, started):
        while not self._is_ready():
            if self._process.poll() is not None:
                raise ServerError(f"{self._name} ended with exit code {self._process.returncode}")
            if time.monotonic() - started > self._seconds_to_be_ready:
                raise ServerError(f"{self._name} was not ready within {self._seconds_to_be_ready} s")
            time.sleep(0.002)

    def _is_ready(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", self._ready_path)
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()
