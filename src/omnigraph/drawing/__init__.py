"""Graphs drawn: into one HTML file that needs nothing else, or for the explorer.

drawing     what is drawn, and the page around it
schema, pattern, surroundings, difference, history   what can be drawn
layout.js, view.js, hands.js, details.js   where nodes go, how they are seen and moved: one source for both
page.html, page.css, page.js   the file, put together when it is written
"""
