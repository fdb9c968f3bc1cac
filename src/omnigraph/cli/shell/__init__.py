"""The interactive prompt.

statement   where a statement that is typed over several lines ends
completing  what could come next, from the schema
session     what statements and commands do
prompt      the terminal
"""
