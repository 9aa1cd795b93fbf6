"""A tiny random model, and a bench script run on it, for the tests beside this file."""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["BOUQUET_BUILD"])


def make_tiny_model(folder):
    """BERT whose words w5 … w299 are served as text."""
    subprocess.run([sys.executable, ROOT / "tools/make_random_model.py", folder], check=True)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    ends = [{"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]")]
    tokenizer |= {
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocabulary},
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                       "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing", "single": [ends[0], {"Sequence": {"id": "A", "type_id": 0}}, ends[1]],
            "pair": [ends[0], {"Sequence": {"id": "A", "type_id": 0}}, ends[1], {"Sequence": {"id": "B", "type_id": 1}}, ends[1]],
            "special_tokens": {name: {"id": name, "ids": [vocabulary[name]], "tokens": [name]} for name in ("[CLS]", "[SEP]")}}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


def make_stand_in(path):
    """A command for --python: stand_in.py by the interpreter of this process, which has numpy."""
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tests/bench/stand_in.py" "$@"\n')
    path.chmod(0o755)
    return path


def run_script(name, *arguments, **environment):
    """(exit code, output, the result file that was written or None)."""
    out = pathlib.Path(arguments[arguments.index("--out") + 1])
    done = subprocess.run([sys.executable, ROOT / "bench" / name, *map(str, arguments)], capture_output=True, text=True,
                          timeout=250, check=False, env={**os.environ, **environment})
    files = sorted(out.glob("*.json")) if out.exists() else []
    return done.returncode, done.stdout + done.stderr, json.loads(files[-1].read_text()) if files else None
