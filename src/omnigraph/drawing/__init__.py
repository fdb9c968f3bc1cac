"""Draw graphs: into one self-contained HTML file, or for the explorer.

drawing     nodes and links, and the HTML page for them
schema, pattern, surroundings, difference, history   one drawing each
layout.js, view.js, hands.js, details.js   layout, rendering and interaction, shared by the page and the explorer
page.html, page.css, page.js   templates of the HTML page
"""
