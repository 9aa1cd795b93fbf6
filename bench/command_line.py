"""What a result file says was typed."""

WHERE = ("--binaries", "--bouquet", "--models", "--out", "--python")  # and where this machine keeps things, which says nothing


def command_line(verb, arguments):
    """`verb` with its arguments, without those of WHERE."""
    kept, skip = [], False
    for argument in arguments:
        if skip or argument.split("=")[0] in WHERE:
            skip = not skip and "=" not in argument
            continue
        kept.append(argument)
    return " ".join([verb, *kept])
