"""The terminal of the prompt: history, completion, colours, and lines that belong together."""

from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.output import ColorDepth, Output

from omnigraph.cli.shell.session import COMMANDS, Session
from omnigraph.cli.shell.statement import is_command, is_whole
from omnigraph.errors import GraphError
from omnigraph.language import lexer
from omnigraph.language.query.completing import suggestions, typed
from omnigraph.language.text import Source

_STYLES = {
    lexer.VARIABLE: "ansicyan",
    lexer.TYPE_NAME: "ansigreen",
    lexer.STRING: "ansiyellow",
    lexer.INTEGER: "ansimagenta",
    lexer.FLOAT: "ansimagenta",
}
_KEYWORDS = {"query", "match", "return", "order", "limit", "insert", "update", "delete", "set", "where", "not", "as"}


class Terminal:
    """Reads statements from a keyboard until somebody leaves."""

    def __init__(
        self,
        session: Session,
        *,
        history: Path,
        colours: bool,
        source: Input | None = None,
        output: Output | None = None,
    ) -> None:
        """Make a prompt that talks to a session.

        Args:
            session (Session): what it talks to.
            history (Path): the file with what was typed before.
            colours (bool): whether to use any.
            source (Input | None): the keyboard, if not that of the process.
            output (Output | None): the screen, if not that of the process.
        """
        history.parent.mkdir(parents=True, exist_ok=True)
        self._session = session
        self._prompt: PromptSession[str] = PromptSession(
            history=FileHistory(str(history)),
            completer=_SchemaCompleter(session),
            complete_while_typing=False,
            lexer=_Colours() if colours else None,
            multiline=True,
            prompt_continuation=lambda width, *_: " " * (width - 2) + "· ",
            key_bindings=_keys(),
            color_depth=None if colours else ColorDepth.DEPTH_1_BIT,
            input=source,
            output=output,
        )

    def run(self) -> None:
        """Talk until it is over."""
        while not self._session.is_over:
            try:
                text = self._prompt.prompt(self._session.prompt)
            except KeyboardInterrupt:
                continue  # what was typed is dropped
            except EOFError:
                return
            try:
                self._session.take(text)
            except KeyboardInterrupt:
                self._prompt.output.write("interrupted\n")


def _keys() -> KeyBindings:
    """Enter ends a statement that is whole, and a line of one that is not."""
    keys = KeyBindings()

    @Condition
    def whole() -> bool:
        from prompt_toolkit.application import get_app  # noqa: PLC0415  (only exists while a prompt runs)

        return is_whole(get_app().current_buffer.document.text)

    @keys.add("enter", filter=whole)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys


class _SchemaCompleter(Completer):
    """Completes from the schema where the session looks."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002  (as the prompt calls it)
        """What could come at the cursor."""
        text = document.text_before_cursor
        if is_command(text) and not text.lstrip().startswith("\\explain "):
            yield from self._command_words(text.lstrip())
            return
        text = text.lstrip().removeprefix("\\explain ")
        try:
            found = suggestions(text, self._session.schema)
        except GraphError:
            return  # the branch is gone, say; the next statement tells
        begun = len(typed(text).partial)
        for each in found:
            yield Completion(each.text, start_position=-begun, display_meta=each.about)

    def _command_words(self, text: str) -> Iterable[Completion]:
        command, space, begun = text.partition(" ")
        words = self._session.names(command) if space else list(COMMANDS)
        for each in words:
            if each.startswith(begun if space else command):
                yield Completion(each, start_position=-len(begun if space else command))


class _Colours(Lexer):
    """Colours by the language's own tokens."""

    def lex_document(self, document: Document) -> "_Lines":
        """A function that gives a line in colours."""
        return _Lines(document.lines)


class _Lines:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def __call__(self, number: int) -> StyleAndTextTuples:
        if number >= len(self._lines):
            return []
        line = self._lines[number]
        if is_command(line):
            return [("bold", line)]
        tokens = lexer.tokenize(Source(line))
        parts: StyleAndTextTuples = []
        at = 0
        for kind, start, end in zip(tokens.kinds, tokens.starts, tokens.ends, strict=True):
            word = line[start:end]
            parts.append(("", line[at:start]))
            parts.append(("bold ansiblue" if word in _KEYWORDS else _STYLES.get(kind, ""), word))
            at = end
        return [*parts, ("", line[at:])]
