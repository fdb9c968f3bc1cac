"""Micro-batches into a graph, each exactly once.

Spark numbers the batches of a stream and writes down, under the stream's checkpoint, which it has begun and which it
has done. A batch that was begun and not known to be done comes again, with the same number and the same rows. Its
commit carries the stream's id and that number as its idempotency key: where the first try had made the commit, the
second finds it and does nothing.
"""

from collections.abc import Callable
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from omnigraph.errors import InvalidRequestError, NotFoundError

Sink = Callable[[DataFrame, str], None]
"""What becomes of a batch: its rows, and the key of its commit."""


def batch_key(stream_id: str, batch: int) -> str:
    """The idempotency key of a batch.

    Args:
        batch: the batch's number.

    Returns:
        str: the same for the same batch, and for no other.
    """
    return f"stream:{stream_id}:{batch}"


def run_stream(
    rows: DataFrame, sink: Sink, *, stream_id: str, checkpoint: "str | Path", available_now: bool, every: str | None
) -> StreamingQuery:
    """Send every batch of a stream to a sink.

    Args:
        rows: a stream.
        sink: what becomes of a batch; called again with the same key after a crash.
        stream_id: names the stream; the same after every restart.
        checkpoint: a folder of the stream's own, the same after every restart.
        available_now: end when everything that is there now has been worked off.
        every: how often to look for more, like `10 seconds`.

    Returns:
        StreamingQuery: running.

    Raises:
        InvalidRequestError: the rows are no stream, or the stream has no id.
    """
    if not isinstance(rows, DataFrame) or not rows.isStreaming:
        raise InvalidRequestError("the rows are no stream; write them with graph.spark.write")
    if not stream_id or not isinstance(stream_id, str):
        raise InvalidRequestError("a stream needs an id, a text that stays the same when it is started again")
    if available_now and every is not None:
        raise InvalidRequestError(
            "a stream ends when all is done, or looks again every so often: leave one of both out"
        )

    def load_batch(batch: DataFrame, number: int) -> None:
        sink(batch, batch_key(stream_id, number))

    try:
        place = _place(checkpoint)
        writing = rows.writeStream.foreachBatch(load_batch).option("checkpointLocation", place).queryName(stream_id)
        if available_now:
            writing = writing.trigger(availableNow=True)
        elif every is not None:
            writing = writing.trigger(processingTime=every)
        return writing.start()
    except PySparkException as refused:
        raise InvalidRequestError(f"the stream '{stream_id}' cannot start: {first_line(refused)}") from refused


def lines_of_folder(spark: SparkSession, folder: "str | Path", *, files_per_batch: int | None) -> DataFrame:
    """The lines of files that appear in a folder, as a stream.

    Args:
        folder: where files of JSON lines appear, each whole at once (moved there, not written there).
        files_per_batch: how many files a batch takes at most.

    Returns:
        DataFrame: the column `value`.

    Raises:
        NotFoundError: there is no such folder.
        InvalidRequestError: a batch cannot take so many files.
    """
    reading = spark.readStream.format("text")
    if files_per_batch is not None:
        if not isinstance(files_per_batch, int) or files_per_batch < 1:
            raise InvalidRequestError(f"a batch takes one file or more, not {files_per_batch!r}")
        reading = reading.option("maxFilesPerTrigger", files_per_batch)
    try:
        return reading.load(_place(folder))
    except PySparkException as refused:
        message = f"the folder {folder} cannot be read: {first_line(refused)}; make it first"
        raise NotFoundError(message, code="data_not_found", path=str(folder)) from refused


def first_line(refused: PySparkException) -> str:
    """What Spark says of a mistake, in one line.

    Args:
        refused: the mistake.

    Returns:
        str: without where it is in Spark.
    """
    first = next(iter(str(refused).splitlines()), "")
    return first.partition(" SQLSTATE")[0].rstrip(" .")


def _place(path: "str | Path") -> str:
    """A path as Spark's own process understands it, whose working folder is not ours."""
    text = str(path)
    return text if "://" in text else str(Path(text).absolute())
