"""What an engine is asked for, by the scenario that it will be measured with."""

from pathlib import Path
from types import SimpleNamespace

from harness.run.lives import Lives
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare


def test_a_first_answer_has_the_time_of_the_requests_after_it():
    prepared = prepare(RunOptions("fixed-length", "openai=http://h:1", overrides={"request.timeout_s": 700}))
    folder = SimpleNamespace(log_path=lambda _life: Path("log"))
    run = SimpleNamespace(prepared=prepared, folder=folder, _life=lambda _block: "life")
    assert Lives._request(run, prepared.plan[0]).answer_s == 700
