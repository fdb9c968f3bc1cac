"""The schema language: text to a resolved schema, and the steps from one schema to the next."""
