"""Entry of the sampler process; not a command for people."""

import sys
from multiprocessing.connection import Connection

from harness.host.helper_process import in_words, set_up
from harness.sampling.sampler import run_watch, step_aside


def main() -> None:
    descriptor, parent = map(int, sys.argv[1:])
    set_up(parent)
    step_aside()
    with in_words("sampler"), Connection(descriptor) as pipe:
        pipe.send(run_watch(pipe.recv(), pipe))


main()
