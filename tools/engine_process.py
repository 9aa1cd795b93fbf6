"""The engine in a process of its own (bench/engine_timing.cc), asked with batches of token ids."""
import json
import os
import subprocess
import tempfile


class EngineProcess:
    """One loaded model. `facts` is what the process told after loading: load_seconds, width, weight_bytes, device, …"""

    def __init__(self, binary, model, **options):
        arguments = [f"{name}={value}" for name, value in options.items()]
        self._process = subprocess.Popen([str(binary), str(model), *arguments], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)
        self.facts = self._answer()

    def times(self, batches, repeat=1, under_way=1):
        """Seconds of each of `repeat` runs over all batches."""
        return [us / 1e6 for us in self.ask(batches, repeat, under_way)["us"]]

    def rows(self, batches, repeat=1, under_way=1):
        """All rows of the last run, [sequences of all batches, width] float32."""
        import numpy as np  # what only times steps needs none
        with tempfile.NamedTemporaryFile(suffix=".rows") as file:
            self.ask(batches, repeat, under_way, rows=file.name)
            return np.fromfile(file.name, np.float32).reshape(-1, self.facts["width"])

    def ask(self, batches, repeat=1, under_way=1, **more):
        self._process.stdin.write(request_line(batches, repeat=repeat, under_way=under_way, **more))
        self._process.stdin.flush()
        return self._answer()

    @property
    def pid(self):
        return self._process.pid

    def peak_bytes(self):
        """The most host memory that the process held."""
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        return 0

    def close(self):
        self._process.stdin.close()
        code = self._process.wait(timeout=60)
        if code != 0:
            raise SystemExit(f"engine_timing ended with exit code {code}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"engine_timing ended with exit code {self._process.wait()}")
        return json.loads(line)


def request_line(batches, **more):
    """One request as engine_timing reads it."""
    return json.dumps({"batches": batches, **more}) + "\n"


def default_folder(root):
    """Of the programs for a GPU, where a build or an unpacked bundle has them."""
    for folder in (os.environ.get("BOUQUET_GPU_BINARIES"), f"{root}/build/cuda", f"{root}/build/bundle"):
        if folder and os.path.exists(f"{folder}/engine_timing"):
            return folder
    raise SystemExit("engine_timing is missing: ./dev build cuda, or unpack a bundle into build/bundle")


def default_binary(root):
    return f"{default_folder(root)}/engine_timing"
