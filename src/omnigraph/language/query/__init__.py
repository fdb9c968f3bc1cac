"""Query language: text to typed, planned queries.

parse         text to its syntax tree
format_file   syntax tree to canonical text
compile       text and schema to a query ready to run, cached by both
              (wrong_under_any_schema: whether a text is invalid for every schema)
bind_params   JSON to the parameter values of one run
explain       the plan of a compiled query, for people
lint          errors and warnings in a file
"""

from omnigraph.language.query.compile import CompiledQuery, bind_params, compile, explain, wrong_under_any_schema
from omnigraph.language.query.format import format_file
from omnigraph.language.query.lint import LintReport, lint
from omnigraph.language.query.params import Params
from omnigraph.language.query.parse import parse
from omnigraph.language.query.statements import QueryFile

__all__ = [
    "CompiledQuery",
    "LintReport",
    "Params",
    "QueryFile",
    "bind_params",
    "compile",
    "explain",
    "format_file",
    "lint",
    "parse",
    "wrong_under_any_schema",
]
