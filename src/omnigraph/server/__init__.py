"""The server: graphs over HTTP.

main, settings           what is typed, and what follows from it
app, gate, openapi       one application: who asks and of which graph, then a route
routes/                  one file per noun; each is thin over the API
requests, responses      what bodies look like
errors                   which answer an error is
authorize, tokens        who may do what
admission, bodies, slots what one caller may hold
logs, metrics            what can be seen of it from outside
"""
