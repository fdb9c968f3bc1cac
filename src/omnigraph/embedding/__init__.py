"""Texts to vectors, by one of several providers.

    provider    what a provider is, and what every vector must be
    choose      the provider that the environment names
    mock        vectors from a hash of the text: no meaning, no network
    http        requests with timeouts, a deadline and retries
    openai      OpenAI and whatever speaks its protocol
    gemini      Gemini
    local       a small model that runs in this process, from a package

Nothing is embedded when rows are written: only a text given to `nearest`, and what `omnigraph embed` is told to.
"""
