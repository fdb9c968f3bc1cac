"""The Python API: one class per noun, thin over the packages below."""
