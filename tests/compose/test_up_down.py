"""`bench up`, `logs`, `down`: an engine that stays until it is told to go."""

import re
import subprocess

import pytest

from tests.compose.conftest import SMALL, docker


@pytest.fixture
def up(bench, simulator):
    image = simulator(HABITS="slow")
    yield lambda *more, **options: bench(
        "up", "vllm", "--launch", "compose", *more, BENCH_IMAGE_VLLM=image, **options
    )
    bench("down")


def test_up_is_measured_by_url_read_and_taken_down(bench, up):
    shown = up("--engine-set", "max_sequences=3").stdout
    url = re.search(r"vllm serves model 'bench' at (\S+)", shown)[1]
    assert f"--backends vllm={url}" in shown
    done = bench("run", "--scenario", "shared-prefix", "--backends", f"vllm={url}", *SMALL, "-v", code=(0, 4))
    assert "launch attach" in done.stdout
    assert "loading the model" in bench("logs", "vllm").stdout
    assert len(bench("logs", "vllm", "--tail", "1").stdout.splitlines()) == 1
    (container,) = docker("ps", "--quiet", "--filter", "label=llm-servebench.kept=yes").split()
    assert '"--max-num-seqs","3"' in docker("inspect", "--format", "{{json .Config.Cmd}}", container)
    assert "vllm: stopped and removed" in bench("down", "vllm").stdout
    assert not docker("ps", "--all", "--quiet", "--filter", "label=llm-servebench.kept=yes")
    assert "vllm is not up" in bench("down", "vllm").stderr


def test_a_second_up_is_refused_with_the_url_of_the_first(bench, up):
    url = re.search(r" at (\S+)", up().stdout)[1]
    refused = up(code=3)
    assert f"vllm: it is already up, at {url}" in refused.stderr
    assert "bench down vllm" in refused.stderr


def test_a_run_beside_it_says_so(bench, up, simulator):
    up()
    what = ("--scenario", "shared-prefix", "--backends", "llamacpp", "--launch", "compose")
    done = bench("run", *what, *SMALL, code=(0, 4), BENCH_IMAGE_LLAMACPP=simulator())
    assert "vllm, started with `bench up`, runs on this machine at the same time" in done.stderr
    assert len(docker("ps", "--quiet", "--filter", "label=llm-servebench.kept=yes").split()) == 1


def test_an_engine_that_does_not_come_up_is_not_kept(bench, simulator):
    done = bench("up", "vllm", "--launch", "compose", code=3, BENCH_IMAGE_VLLM=simulator(HABITS="dies"))
    assert "CUDA out of memory" in done.stderr


def test_following_a_log_leaves_the_engine_alone(bench, up):
    up()
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(bench.command("logs", "-f", "vllm"), cwd=bench.folder, timeout=3, capture_output=True)
    assert docker("ps", "--quiet", "--filter", "label=llm-servebench.kept=yes")


def test_logs_of_nothing_say_where_logs_are(bench):
    assert "it has no container here" in bench("logs", "llamacpp", code=3).stderr


def test_as_a_process_it_stays_until_ctrl_c(bench):
    import signal

    process = bench.begin("up", "truth")
    line = process.stdout.readline()
    assert "truth serves model" in line
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "Traceback" not in err
