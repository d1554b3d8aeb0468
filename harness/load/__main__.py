"""Entry of a worker process; not a command for people."""

from harness.load.worker import main

main()
