"""print_ids as one side of a comparison: answers lists of inputs.

An input is a text, or a pair of texts where it is framed. An answer is by input a list of lists of numbers: ids and spans in
characters; framed: ids, types, special mask, spans, and the spans a second time, counted in a pair's second text.
"""

import json
import subprocess
import threading

MODES = {"plain": ["--spans"], "literal": ["--spans", "--literal"], "framed": ["--framed"]}


class OurSide:
    """One process for each mode, started when it is first asked. A None in place of an answer: an error, or the process ended
    at that input."""

    def __init__(self, print_ids, path):
        self._print_ids = print_ids
        self._path = path
        self._processes = {}

    def start(self, mode, inputs):
        """Encodes while the caller does something else; `finish` has the answers."""
        process = self._process(mode)
        writer = threading.Thread(target=self._write, args=(process, inputs))
        writer.start()
        return lambda: self._finish(mode, inputs, process, writer)

    def answers(self, mode, inputs):
        return self.start(mode, inputs)()

    def _process(self, mode):
        if mode not in self._processes:
            self._processes[mode] = subprocess.Popen([self._print_ids, str(self._path), *MODES[mode]], stdin=subprocess.PIPE,
                                                     stdout=subprocess.PIPE, text=True)
        return self._processes[mode]

    @staticmethod
    def _write(process, inputs):
        try:
            process.stdin.write("".join(json.dumps(i) + "\n" for i in inputs))
            process.stdin.flush()
        except BrokenPipeError:
            pass  # the reader sees the end

    def _finish(self, mode, inputs, process, writer):
        found = []
        while len(found) < len(inputs) and (line := process.stdout.readline()):
            found.append(None if line == "error\n" else [[*map(int, part.split())] for part in line.split("|")])
        writer.join()
        if len(found) == len(inputs):
            return found
        del self._processes[mode]
        self._end(process)
        if process.returncode > 0:  # it says why itself
            raise SystemExit(f"print_ids {self._path}: ended with exit code {process.returncode}")
        return found + [None] + self.answers(mode, inputs[len(found) + 1:])

    @staticmethod
    def _end(process):
        process.stdout.close()
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass
        process.wait()

    def close(self):
        for process in self._processes.values():
            self._end(process)
        self._processes = {}
