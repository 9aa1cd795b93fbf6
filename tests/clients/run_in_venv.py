#!/usr/bin/env python3
"""Runs one test module under build/venv-clients, or skips with the reason (exit code 77).

With BOUQUET_CLIENTS_REQUIRED=1, as `./dev test` sets it, a missing environment or model is a failure.
"""
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def main():
    python = ROOT / "build/venv-clients/bin/python"
    model = Path(os.environ.get("BOUQUET_DEMO_MODEL", ROOT / "build/models/all-MiniLM-L6-v2"))
    for path, remedy in ((python, "./dev test makes it"), (model, "./dev setup fetches it")):
        if not path.exists():
            print(f"{path} does not exist: {remedy}")
            return 1 if os.environ.get("BOUQUET_CLIENTS_REQUIRED") == "1" else 77
    # Whatever proxy or key the caller's environment names is not for these tests.
    environment = {name: value for name, value in os.environ.items()
                   if not name.lower().endswith("_proxy") and not name.startswith("OPENAI_")}
    environment.update(BOUQUET_DEMO_MODEL=str(model), HF_HUB_DISABLE_TELEMETRY="1",
                       PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=str(ROOT / "tools"))
    os.chdir(HERE)
    os.execve(python, [str(python), "-m", "unittest", "-v", *sys.argv[1:]], environment)


if __name__ == "__main__":
    sys.exit(main())
