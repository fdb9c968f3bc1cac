"""The program `omnigraph`.

Exit codes: 0 success; 1 error; 2 invalid arguments; 4 the head was not the commit of `--if-commit`; 130 interrupted.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from omnigraph.cli.parsing import HelpRequested, ParsedCommand, UsageError, parse_command

USAGE, INTERRUPTED, BROKEN_PIPE = 2, 130, 141


def main(words: Sequence[str] | None = None, *, out: TextIO | None = None, err: TextIO | None = None) -> int:
    """Run one command.

    Args:
        words: the words after the program's name; those of the process by default.
        out: stream of results; stdout by default.
        err: stream of everything else; stderr by default.

    Returns:
        The exit code.
    """
    words = sys.argv[1:] if words is None else words
    # A process started with closed streams has None for them.
    out, err = out or sys.stdout or _null_stream(), err or sys.stderr or _null_stream()
    try:
        return _parse_and_run(words, out, err)
    except KeyboardInterrupt:
        err.write("\ninterrupted: a write that was not acknowledged happened as a whole, or not at all\n")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has closed it. The rest of the buffer must not fail a second time at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _null_stream() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _parse_and_run(words: Sequence[str], out: TextIO, err: TextIO) -> int:
    try:
        parsed = parse_command(words)
        for warning in parsed.warnings:
            err.write(f"{warning}\n")
        return _run(parsed, out, err)
    except HelpRequested as help_text:
        out.write(f"{str(help_text).removesuffix(chr(10))}\n")
        return 0
    except UsageError as error:
        if "--json" in words:
            err.write(f"{json.dumps({'error': str(error), 'code': 'usage'}, ensure_ascii=False)}\n")
        else:
            err.write(f"{error.usage}error: {error}\n")
        return USAGE


def _run(parsed: ParsedCommand, out: TextIO, err: TextIO) -> int:
    from omnigraph.cli.context import CommandContext  # noqa: PLC0415  (not for help and the version)
    from omnigraph.errors import GraphError  # noqa: PLC0415  (not for help and the version)

    context: CommandContext | None = None
    try:
        context = CommandContext(parsed.spec, parsed.arguments, out=out, err=err)
        code = parsed.command.run(context)
        out.flush()
    except (BrokenPipeError, UsageError):
        raise
    except (GraphError, OSError) as error:
        if parsed.arguments.global_debug:
            raise
        from omnigraph.cli.report import report, report_json  # noqa: PLC0415  (only for an error)

        # Only an address that was resolved: resolving it may be what failed.
        scope = None if context is None else context.__dict__.get("scope")
        shown = None if scope is None else str(scope.shown)
        describe = report_json if getattr(parsed.arguments, "json", False) else report
        err.write(f"{describe(error, where=shown, command=parsed.spec.name)}\n")
        return 1
    except Exception as fault:  # no traceback without --debug
        if parsed.arguments.global_debug:
            raise
        if getattr(parsed.arguments, "json", False):
            message = f"internal error: {type(fault).__name__}: {fault}"
            err.write(f"{json.dumps({'error': message, 'code': 'internal'}, ensure_ascii=False)}\n")
            return 1
        err.write(
            f"error: internal error: {type(fault).__name__}: {fault}\n"
            "  try: this is a bug in omnigraph: run it again with --debug and report the output\n"
        )
        return 1
    return code


def run() -> None:
    """Run the program; the entry point of the package."""
    sys.exit(main())


if __name__ == "__main__":
    run()
