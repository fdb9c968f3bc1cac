"""The explorer: one page that shows the graphs of a server.

files       the page and what it loads, all from here
routes      what it asks beyond the routes that everybody uses
static/     plain HTML, CSS and modules; no step between them and the browser
"""
