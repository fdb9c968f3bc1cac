"""Graphs drawn: into one HTML file that needs nothing else, or for the explorer.

drawing     what is drawn, and the page around it
schema, pattern, difference, history   what can be drawn
layout.js, view.js   where nodes go, and how they are seen: one source for both
page.html, page.css, page.js   the file, put together when it is written
"""
