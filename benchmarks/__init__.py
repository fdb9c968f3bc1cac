"""What things cost, measured: `python -m benchmarks.NAME [--quick] [--json]`."""

import os

# LanceDB warns of searches whose scores are not asked for, a line for each; it looks here when it is first imported.
os.environ.setdefault("LANCEDB_LOG", "error")
