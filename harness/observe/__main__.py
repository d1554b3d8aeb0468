"""Entry of the sampler process; not a command for people."""

import sys
from multiprocessing.connection import Connection

from harness.child import in_words, settle
from harness.observe.sampler import run_watch, step_aside


def main() -> None:
    descriptor, parent = map(int, sys.argv[1:])
    settle(parent)
    step_aside()
    with in_words("sampler"), Connection(descriptor) as pipe:
        pipe.send(run_watch(pipe.recv(), pipe))


main()
