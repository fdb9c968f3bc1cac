"""One operator per file: each takes batches of rows from the one before and passes batches on."""
