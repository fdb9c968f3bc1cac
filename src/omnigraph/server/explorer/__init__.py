"""The explorer: a web page that shows the graphs of a server.

files       serves the page and its assets
routes      routes that only the explorer uses
static/     plain HTML, CSS and JavaScript modules; no build step
"""
