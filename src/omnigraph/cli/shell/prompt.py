"""The terminal of the shell: history, completion, colours, and statements over several lines."""

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
from omnigraph.cli.shell.statement import is_command, is_complete
from omnigraph.errors import GraphError
from omnigraph.language import lexer
from omnigraph.language.query.completing import split_words, suggest_next
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
    """Reads statements from a terminal and executes them."""

    def __init__(
        self,
        session: Session,
        *,
        history: Path,
        colours: bool,
        source: Input | None = None,
        output: Output | None = None,
    ) -> None:
        """Make a terminal for a session.

        Args:
            session: executes the statements.
            history: file with earlier input.
            colours: whether to use colours.
            source: the input; that of the process by default.
            output: the output; that of the process by default.
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
        """Read and execute statements until the user quits."""
        while not self._session.is_over:
            try:
                text = self._prompt.prompt(self._session.prompt)
            except KeyboardInterrupt:
                continue  # drops the current input
            except EOFError:
                return
            try:
                self._session.execute(text)
            except KeyboardInterrupt:
                self._prompt.output.write("interrupted\n")


def _keys() -> KeyBindings:
    """Bind Enter: it ends a complete statement, and starts a new line in an incomplete one."""
    keys = KeyBindings()

    @Condition
    def is_complete_now() -> bool:
        from prompt_toolkit.application import get_app  # noqa: PLC0415  (only exists while a prompt runs)

        return is_complete(get_app().current_buffer.document.text)

    @keys.add("enter", filter=is_complete_now)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys


class _SchemaCompleter(Completer):
    """Completes commands, and statements from the current schema."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002  (the signature of prompt_toolkit)
        """Return the completions at the cursor."""
        text = document.text_before_cursor
        if is_command(text) and not text.lstrip().startswith("\\explain "):
            yield from self._command_words(text.lstrip())
            return
        text = text.lstrip().removeprefix("\\explain ")
        try:
            found = suggest_next(text, self._session.schema)
        except GraphError:
            return  # for example a deleted branch, which the next statement reports
        typed_length = len(split_words(text).partial)
        for suggestion in found:
            yield Completion(suggestion.text, start_position=-typed_length, display_meta=suggestion.about)

    def _command_words(self, text: str) -> Iterable[Completion]:
        command, space, argument = text.partition(" ")
        words = self._session.argument_names(command) if space else list(COMMANDS)
        prefix = argument if space else command
        for word in words:
            if word.startswith(prefix):
                yield Completion(word, start_position=-len(prefix))


class _Colours(Lexer):
    """Colours the tokens of the query language."""

    def lex_document(self, document: Document) -> "_ColouredLines":
        """Return a function from a line number to its coloured parts."""
        return _ColouredLines(document.lines)


class _ColouredLines:
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
        position = 0
        for kind, start, end in zip(tokens.kinds, tokens.starts, tokens.ends, strict=True):
            word = line[start:end]
            parts.append(("", line[position:start]))
            parts.append(("bold ansiblue" if word in _KEYWORDS else _STYLES.get(kind, ""), word))
            position = end
        return [*parts, ("", line[position:])]
