"""Embeddings of texts, from one of several providers.

    provider    the interface of a provider, the checks of its vectors, and a mock
    choose      chooses the provider from environment variables
    services    OpenAI and compatible services, and Gemini
    local       a small model that runs in this process
    files       embeds the records of a file

Writing rows embeds nothing: only the text of a `nearest` search, and `omnigraph embed`, call a provider.
"""
