"""One `bouquet serve` with the demo's model, shared by the tests of a module."""
import http.client
import os
import signal
import socket
import subprocess
import time


class RunningServer:
    def __init__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process = subprocess.Popen([os.environ["BOUQUET_BINARY"], "serve", os.environ["BOUQUET_DEMO_MODEL"],
                                          "--port", str(self.port), "--log-level", "warning"])
        deadline = time.monotonic() + 60
        while not self._is_ready():
            if self._process.poll() is not None:
                raise RuntimeError(f"the server ended with exit code {self._process.returncode}")
            if time.monotonic() > deadline:
                self._process.kill()
                raise RuntimeError("the server was not ready within 60 s")
            time.sleep(0.05)

    def stop(self):
        """Its exit code after SIGTERM."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise

    def _is_ready(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/health/ready")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()
