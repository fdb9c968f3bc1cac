"""The pipeline runs on the public DataFrame API of Spark, so that it works over Spark Connect."""

import re
from pathlib import Path

import omnigraph

SOURCES = Path(omnigraph.__file__).parent
# RDDs, `SparkContext`, and private attributes of PySpark and py4j.
FORBIDDEN = re.compile(
    r"\.rdd\b|\bRDD\b|\bparallelize\(|sparkContext|SparkContext|_jvm\b|_jsc\b|_jdf\b|_jrdd\b|_jsparkSession|\._gateway\b"
    r"|java_gateway"
)
ALLOWED = {
    # Starts the embedded session, and hides what classic sessions and Spark Connect do differently.
    "pipeline/session.py",
    # Reads the plan of a query of a classic session, for which there is no public API; over Spark Connect it reads all.
    "pipeline/narrowing.py",
}


def test_only_the_embedded_session_uses_anything_but_the_public_dataframe_api() -> None:
    found = {
        f"{file.relative_to(SOURCES)}:{number}: {line.strip()}"
        for file in SOURCES.rglob("*.py")
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if str(file.relative_to(SOURCES)) not in ALLOWED and FORBIDDEN.search(line)
    }
    assert not found
