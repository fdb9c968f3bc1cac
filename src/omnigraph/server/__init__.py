"""The HTTP server. Start reading at `app`.

main, settings, serving        the program: flags, environment, processes
app, app_state, openapi        the FastAPI application and what its requests share
middleware, graph_call         request id, authentication, the graph of a request
routing, routes/, explorer/    routes, thin over the API; one file per noun
request_models, *_models       bodies of requests and responses, for the API document
responses, errors              build responses; map errors to statuses
tokens, aws_secret, authorization   who may do what
fair_scheduler, memory_budget, timeouts   limits: concurrency, bytes, time
graphs, opening, stored_queries, maintenance   what is served
logs, metrics                  observability
"""
