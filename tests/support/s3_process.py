"""What runs inside the S3 server's process: `python -m tests.support.s3_process <socket>`."""

import asyncio
import os
import sys
import threading

from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack.app import app


def main(listener: int) -> None:
    """Serve on an inherited socket until told to stop, or until whoever started us is gone.

    Args:
        listener (int): descriptor of the listening socket.
    """
    threading.Thread(target=_follow_parent, daemon=True).start()
    config = Config()
    config.bind = [f"fd://{listener}"]
    config.keep_alive_timeout = 75
    config.loglevel = "ERROR"
    asyncio.run(serve(app, config))


def _follow_parent() -> None:
    # The other end of this pipe closes when the parent ends, however it ends.
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
