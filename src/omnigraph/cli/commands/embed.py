"""Compute embeddings for the records of a file: `embed`."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from omnigraph.cli.arguments import add_json
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command
from omnigraph.cli.validation import check_embed, parse_json, read_text
from omnigraph.errors import InvalidRequestError

_EXAMPLES = """\
  omnigraph embed --input docs.jsonl --output docs.embedded.jsonl --spec embed.json
  omnigraph embed --seed seed.yaml --select Doc:lang=en"""
_DESCRIPTION = """\
Compute embeddings for the records of a file, with the provider of OMNIGRAPH_EMBED_PROVIDER (openai-compatible, openai,
gemini, mock, or local for a model that runs on this machine). No graph is changed; load the output."""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seed", metavar="FILE", help="YAML file that names the input, the output and what to embed")
    parser.add_argument("--input", metavar="FILE", help="records, one JSON object per line")
    parser.add_argument("--output", metavar="FILE", help="file for the records with embeddings")
    parser.add_argument("--spec", metavar="FILE", help="JSON file that says what to embed")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--clean", action="store_true", help="remove embeddings instead")
    mode.add_argument("--reembed-all", action="store_true", help="also replace existing embeddings")
    parser.add_argument("--type", metavar="TYPE", action="append", default=[], help="only this type; repeatable")
    parser.add_argument(
        "--select", metavar="EXPR", action="append", default=[], help="only TYPE:FIELD=VALUE or FIELD=VALUE; repeatable"
    )
    add_json(parser)


def _run(context: CommandContext) -> int:
    from omnigraph.embedding.choose import choose_provider  # noqa: PLC0415  (imports numpy; help must not: test_startup)
    from omnigraph.embedding.files import EmbedMode, embed_file, read_selection, read_spec  # noqa: PLC0415  (imports numpy; help must not: test_startup)

    args = context.args
    check_embed(args)
    source, target, document, where = _read_seed(args) if args.seed is not None else _read_spec(args)
    selections = [read_selection(expression) for expression in args.select]
    mode = EmbedMode.REEMBED_SELECTED if selections else EmbedMode.FILL_MISSING
    if args.clean:
        mode = EmbedMode.CLEAN
    elif args.reembed_all:
        mode = EmbedMode.REEMBED_ALL
    report = embed_file(
        source,
        target,
        read_spec(document, where=where),
        choose_provider,
        mode=mode,
        types=args.type,
        selections=selections,
    )
    return context.show(report.to_dict(), str(report))


def _read_spec(args: Namespace) -> tuple[Path, Path, Any, str]:
    text = read_text(args.spec, "the specification")
    return Path(args.input), Path(args.output), parse_json(text, f"the specification {args.spec} is"), args.spec


def _read_seed(args: Namespace) -> tuple[Path, Path, Any, str]:
    import yaml  # noqa: PLC0415  (only for seeds)

    from omnigraph.embedding.files import DEFAULT_OUTPUT  # noqa: PLC0415  (imports numpy; help must not: test_startup)

    try:
        seed = yaml.safe_load(read_text(args.seed, "the seed")) or {}
        source = (seed.get("sources") or {}).get("raw_seed") or (seed.get("seed") or {}).get("data")
        target = (seed.get("artifacts") or {}).get("embedded_seed") or DEFAULT_OUTPUT
        document = seed.get("embeddings")
    except (yaml.YAMLError, AttributeError) as error:
        raise InvalidRequestError(f"the seed {args.seed} is not a mapping in YAML: {error}") from None
    if not source:
        raise InvalidRequestError(f"the seed {args.seed} names no input (sources.raw_seed or seed.data)")
    folder = Path(args.seed).parent
    return folder / str(source), folder / str(target), document, args.seed


COMMANDS = {"embed": Command(_run, _arguments, _EXAMPLES, _DESCRIPTION)}
