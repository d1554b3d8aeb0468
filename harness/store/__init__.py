"""The run folder: the only room that writes results, and the one every analysis reads from."""

from harness.store.find import open_run, refuse_file_of_run
from harness.store.folder import RunFolder, each_once, names_apart, stored_runs
