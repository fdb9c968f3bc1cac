"""Graphs drawn into one HTML file that needs nothing else.

drawing     what is drawn, and the page around it
schema, pattern, difference, history   what can be drawn
page.html, page.css, layout.js, view.js   the page, put together when it is written
"""
