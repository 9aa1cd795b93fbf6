"""Files in bench/results: how they are written, and what they say was typed."""
import json

# Where this machine keeps things, which says nothing.
WHERE = ("--binaries", "--bouquet", "--llama-server", "--models", "--out", "--python")


def command_line(verb, arguments):
    """`verb` with its arguments, without those of WHERE."""
    kept, skip = [], False
    for argument in arguments:
        if skip or argument.split("=")[0] in WHERE:
            skip = not skip and "=" not in argument
            continue
        kept.append(argument)
    return " ".join([verb, *kept])


def write(result, folder, name):
    """Writes the dictionary `result` as it is by now. Returns the path. SystemExit: why it cannot be written."""
    path = folder / f"{name}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n")
    except OSError as error:
        raise SystemExit(f"bench: cannot write {path}: {error.strerror}") from error
    return path


def say_written(path):
    print(f"written: {path}\nto show it in the documents: tools/docs.py --write")
