"""The interactive shell.

statement   splits the input into statements, which may span lines
session     executes statements and commands
prompt      the terminal: history, completion, colours
"""
