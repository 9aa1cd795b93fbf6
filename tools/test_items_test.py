"""tools/test.sh: an item that fails anywhere has failed. Run by ctest; needs bash."""
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = """
set -euo pipefail
cd "$1"
JOBS=1
say() { printf '%s\\n' "$*"; }
. tools/test.sh
works() { true; say works; }
fails_halfway() { false; say 'went on'; }
"""


def run(body):
    done = subprocess.run(["bash", "-c", SCRIPT + body, "bash", str(ROOT)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


class Items(unittest.TestCase):
    def test_a_failure_in_the_middle_of_an_item_is_one_of_the_item(self):
        code, output = run("item first works; item second fails_halfway; passed && say wrong\n"
                           "item third works; passed && say right; print_items; ! has_failures")
        self.assertEqual(code, 1, output)
        self.assertNotIn("went on", output)
        self.assertNotIn("wrong", output)
        self.assertIn("right", output)
        results = {line.split()[0]: line.split()[-1] for line in output.splitlines() if line.endswith((" ok", " FAILED"))}
        self.assertEqual(results, {"first": "ok", "second": "FAILED", "third": "ok"})

    def test_without_data_generated_strings_skip_visibly_unless_required(self):
        without = ("parity_tokenizers() { say went on; false; }; export BOUQUET_DATA=nowhere BOUQUET_DATA_REQUIRED=%d; "
                   "item strings generated_strings; ! has_failures")
        code, output = run(without % 0)
        self.assertEqual(code, 0, output)
        self.assertIn("SKIPPED: no test data", output)
        self.assertNotIn("went on", output)
        code, output = run(without % 1)
        self.assertEqual(code, 1, output)
        self.assertIn("went on", output)

    def test_items_that_all_pass_pass(self):
        code, output = run("item first works; item second works; ! has_failures")
        self.assertEqual(code, 0, output)


if __name__ == "__main__":
    unittest.main()
