#!/usr/bin/env python3
"""Runs the examples of README.md and writes them there with what they printed.

  readme_examples.py BOUQUET MODEL

Needs the environment of the client tests (./dev test makes it). Long lists of numbers are shortened, and marked so;
nothing else of the output is touched. The server runs on any free port; the text shows 8080.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from server_process import ServerProcess, free_port

ROOT = Path(__file__).resolve().parents[1]
PLACE = re.compile(r"(<!-- example: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
SHOWN_BINARY, SHOWN_MODEL, SHOWN_PORT = "build/release/bouquet", "build/models/all-MiniLM-L6-v2", 8080

CURL = """curl -s localhost:8080/v1/embeddings -H 'Content-Type: application/json' \\
  -d '{"model": "all-MiniLM-L6-v2", "input": ["A cat sat on the mat.", "Stock prices fell."]}'"""
CURL_ERROR = """curl -s localhost:8080/v1/embeddings -H 'Content-Type: application/json' \\
  -d '{"model": "all-MiniLM-L6-v2", "input": "hello", "dimensions": 1000}'"""
OPENAI = """from openai import OpenAI

client = OpenAI(base_url="http://localhost:8080/v1", api_key="unused")
texts = ["A cat sat on the mat.", "A kitten lay on the rug.", "Stock prices fell."]
rows = [entry.embedding for entry in client.embeddings.create(model="all-MiniLM-L6-v2", input=texts).data]
for text, row in zip(texts, rows):
    print(f"{sum(a * b for a, b in zip(rows[0], row)):.3f}  {text}")"""
COMMANDS = ["build/release/bouquet embed build/models/all-MiniLM-L6-v2 texts.txt --output vectors.npy",
            "echo 'hello world' | build/release/bouquet tokenize build/models/all-MiniLM-L6-v2",
            "build/release/bouquet info build/models/all-MiniLM-L6-v2"]


def shorten(text):
    """Long lists of numbers keep their first three."""
    def cut(match):
        numbers = match.group(1).split(",")
        return f"[{','.join(numbers[:3])}, … {len(numbers) - 3} more]" if len(numbers) > 8 else match.group(0)
    return re.sub(r"\[((?:\s*-?\d[\d.e+-]*\s*,?)+)\]", cut, text)


def shell(command, port, folder, bouquet, model):
    real = command.replace(str(SHOWN_PORT), str(port)).replace(SHOWN_BINARY, bouquet).replace(SHOWN_MODEL, model)
    run = subprocess.run(["bash", "-c", real], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         check=True)
    printed = run.stdout.replace(str(port), str(SHOWN_PORT)).replace(bouquet, SHOWN_BINARY).replace(model, SHOWN_MODEL)
    lines = [line.split("\r")[-1] for line in printed.rstrip().splitlines()]
    return f"$ {command}\n" + shorten("\n".join(lines)) + ("\n" if lines else "")


def python(code, port):
    run = subprocess.run([str(ROOT / "build/venv-clients/bin/python"), "-c", code.replace(str(SHOWN_PORT), str(port))],
                         stdout=subprocess.PIPE, text=True, check=True)
    return run.stdout


def main(arguments):
    if len(arguments) != 2:
        raise SystemExit(__doc__)
    bouquet, model = (os.path.abspath(a) for a in arguments)
    with (ServerProcess.serving(bouquet, model, free_port(SHOWN_PORT)) as server,
          tempfile.TemporaryDirectory() as folder):
        port = server.port
        Path(folder, "texts.txt").write_text("A cat sat on the mat.\nA kitten lay on the rug.\nStock prices fell.\n")
        run = [shell(c, port, folder, bouquet, model) for c in (CURL, CURL_ERROR, *COMMANDS)]
        blocks = {"curl": "```\n" + "\n".join(run[:2]) + "```\n",
                  "openai": f"```python\n{OPENAI}\n```\n\n```\n{python(OPENAI, port)}```\n",
                  "command_line": "```\n" + "\n".join(run[2:]) + "```\n"}
    readme = ROOT / "README.md"
    readme.write_text(PLACE.sub(lambda m: m.group(1) + blocks[m.group(2)] + m.group(3), readme.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
