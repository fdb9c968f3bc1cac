"""`omnigraph completion`."""

from argparse import ArgumentParser

from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.completion import script

_EXAMPLES = """\
  omnigraph completion bash > ~/.local/share/bash-completion/completions/omnigraph
  omnigraph completion zsh > ~/.zfunc/_omnigraph
  omnigraph completion fish > ~/.config/fish/completions/omnigraph.fish"""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")


def _run(call: Call) -> int:

    call.write(script(call.args.shell))
    return 0


COMMANDS = {"": Command(_run, _arguments, _EXAMPLES, "Print a script that completes what is typed in a shell.")}
