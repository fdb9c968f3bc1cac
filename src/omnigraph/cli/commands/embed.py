"""`omnigraph embed`."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from omnigraph.cli.arguments import add_json, read_text
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.errors import InvalidRequestError

_EXAMPLES = """\
  omnigraph embed --input docs.jsonl --output docs.embedded.jsonl --spec embed.json
  omnigraph embed --seed seed.yaml --select Doc:lang=en"""
_DESCRIPTION = """\
Put vectors into a file of records, by the provider that OMNIGRAPH_EMBED_PROVIDER names (openai-compatible, openai,
gemini, mock, or local for a model that runs here). The graph is not touched; load the output."""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seed", metavar="FILE", help="a YAML file that names input, output and what to embed")
    parser.add_argument("--input", metavar="FILE", help="records, one JSON object per line")
    parser.add_argument("--output", metavar="FILE", help="where they go")
    parser.add_argument("--spec", metavar="FILE", help="what to embed, as JSON")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--clean", action="store_true", help="remove vectors instead")
    which.add_argument("--reembed-all", action="store_true", help="also where there is a vector already")
    parser.add_argument("--type", metavar="TYPE", action="append", default=[], help="only this type; repeatable")
    parser.add_argument(
        "--select", metavar="EXPR", action="append", default=[], help="only TYPE:FIELD=VALUE or FIELD=VALUE; repeatable"
    )
    add_json(parser)


def _run(call: Call) -> int:
    from omnigraph.embedding.choose import chosen  # noqa: PLC0415  (loads numpy, and the help of a command no library: test_startup)
    from omnigraph.embedding.files import EmbedMode, embed_file, read_selection, read_spec  # noqa: PLC0415  (loads numpy, and the help of a command no library: test_startup)

    args = call.args
    source, target, document, where = _seed(args) if args.seed is not None else _named(args)
    selections = [read_selection(each) for each in args.select]
    mode = EmbedMode.REEMBED_SELECTED if selections else EmbedMode.FILL_MISSING
    if args.clean:
        mode = EmbedMode.CLEAN
    elif args.reembed_all:
        mode = EmbedMode.REEMBED_ALL
    report = embed_file(
        source,
        target,
        read_spec(document, where=where),
        chosen,
        mode=mode,
        types=args.type,
        selections=selections,
    )
    return call.show(report.to_dict(), str(report))


def _named(args: Namespace) -> tuple[Path, Path, Any, str]:
    if args.input is None or args.output is None or args.spec is None:
        raise InvalidRequestError("give --seed FILE, or all of --input, --output and --spec")
    text = read_text(args.spec, "the specification")
    try:
        return Path(args.input), Path(args.output), json.loads(text), args.spec
    except ValueError as fault:
        raise InvalidRequestError(f"the specification {args.spec} is not JSON: {fault}") from None


def _seed(args: Namespace) -> tuple[Path, Path, Any, str]:
    import yaml  # noqa: PLC0415  (only for seeds)

    from omnigraph.embedding.files import DEFAULT_OUTPUT  # noqa: PLC0415  (loads numpy, and the help of a command no library: test_startup)

    if args.input is not None or args.output is not None or args.spec is not None:
        raise InvalidRequestError("--seed names input, output and what to embed; give none of them beside it")
    try:
        seed = yaml.safe_load(read_text(args.seed, "the seed")) or {}
        source = (seed.get("sources") or {}).get("raw_seed") or (seed.get("seed") or {}).get("data")
        target = (seed.get("artifacts") or {}).get("embedded_seed") or DEFAULT_OUTPUT
        document = seed.get("embeddings")
    except (yaml.YAMLError, AttributeError) as fault:
        raise InvalidRequestError(f"the seed {args.seed} is no mapping in YAML: {fault}") from None
    if not source:
        raise InvalidRequestError(f"the seed {args.seed} names no input (sources.raw_seed or seed.data)")
    folder = Path(args.seed).parent
    return folder / str(source), folder / str(target), document, args.seed


COMMANDS = {"": Command(_run, _arguments, _EXAMPLES, _DESCRIPTION)}
