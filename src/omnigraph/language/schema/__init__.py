"""The schema language: text to a resolved schema, and the steps from one schema to the next.

parse     text to its tree
property_order  text to the declared order of properties, by type
check     tree to what it says, or the first rule it breaks
accept    text to the first schema of a graph
plan      accepted schema and text to the steps between them
format    text to its canonical layout
render    resolved schema to its text
lint      tree to what is valid and probably not meant
"""

from omnigraph.language.schema.check import check, find_problems
from omnigraph.language.schema.format import format
from omnigraph.language.schema.lint import CATALOGUE, Finding, lint
from omnigraph.language.schema.parse import parse, property_order
from omnigraph.language.schema.plan import plan, plan_steps
from omnigraph.language.schema.render import render
from omnigraph.language.schema.resolve import accept

__all__ = [
    "CATALOGUE",
    "Finding",
    "accept",
    "check",
    "find_problems",
    "format",
    "lint",
    "parse",
    "plan",
    "plan_steps",
    "property_order",
    "render",
]
