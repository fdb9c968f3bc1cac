"""The program `omnigraph`.

Exit codes: 0 done; 1 it went wrong; 2 the words make no command; 4 the head was not the commit of `--if-commit`; 130
interrupted.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from omnigraph.cli.words import HelpAsked, UsageError, understood

USAGE, INTERRUPTED, BROKEN_PIPE = 2, 130, 141


def main(words: Sequence[str] | None = None, *, out: TextIO | None = None, err: TextIO | None = None) -> int:
    """Carry out one command.

    Args:
        words: what was typed after the program's name.
        out: where answers go.
        err: where everything else goes.

    Returns:
        The exit code.
    """
    words = sys.argv[1:] if words is None else words
    # A process that was started with its streams closed has none.
    out, err = out or sys.stdout or _nowhere(), err or sys.stderr or _nowhere()
    try:
        return _run(words, out, err)
    except KeyboardInterrupt:
        err.write("\ninterrupted: what was not acknowledged is there whole, or not at all\n")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the answer has seen enough. What is left in the buffer must not fail at exit a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _run(words: Sequence[str], out: TextIO, err: TextIO) -> int:
    try:
        typed = understood(words)
    except HelpAsked as asked:
        out.write(f"{asked}\n" if not str(asked).endswith("\n") else str(asked))
        return 0
    except UsageError as wrong:
        err.write(f"{wrong.usage}error: {wrong}\n")
        return USAGE
    for warning in typed.warnings:
        err.write(f"{warning}\n")
    from omnigraph.cli.call import Call  # noqa: PLC0415  (help and version do without)
    from omnigraph.errors import GraphError  # noqa: PLC0415  (help and version do without)

    call: Call | None = None
    try:
        call = Call(typed.entry, typed.arguments, out=out, err=err)
        code = typed.command.run(call)
        out.flush()
    except BrokenPipeError:
        raise
    except UsageError as wrong:
        err.write(f"{wrong.usage}error: {wrong}\n")
        return USAGE
    except (GraphError, OSError) as error:
        if typed.arguments.debug:
            raise
        from omnigraph.cli.report import report  # noqa: PLC0415  (only when it went wrong)

        err.write(f"{report(error, where=_where(call), command=typed.entry.name)}\n")
        return 1
    except Exception as fault:  # people never see a traceback they did not ask for
        if typed.arguments.debug:
            raise
        err.write(
            f"error: internal error: {type(fault).__name__}: {fault}\n"
            "  try: this is a fault of omnigraph: run it again with --debug and report what it prints\n"
        )
        return 1
    return code


def _where(call: "object") -> str | None:
    """The graph an error is about, if one was addressed."""
    scope = getattr(call, "__dict__", {}).get("scope")
    return None if scope is None else str(scope.shown)


def run() -> None:
    """The entry point of the program."""
    sys.exit(main())


if __name__ == "__main__":
    run()
