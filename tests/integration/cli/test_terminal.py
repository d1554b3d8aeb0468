"""What others wrote does nothing to a terminal or a spreadsheet; other programs get it as it is."""

import csv
import io
import json
import os
import pty
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from harness.cli.commands.query import write_csv
from tests.factories.runs import TWO, Engine, Shape, make_run
from tests.integration import forks
from tests.integration.scripted import bench_here

ACTIVE = "\x1b]0;owned\x07\x1b[2J\x1b[8m\x9b31m\u202e\r"
TEXT = f"=1+1{ACTIVE}"
OTHER = TWO[0].text
COLOURS = re.compile(r"\x1b\[(0|1|2|31|33|1;7)m")  # bench's own
COMMANDS = {
    "report": ("report", "{run}"),
    "report as": ("report", "{run}", "--as", "vllm"),
    "report json": ("report", "{run}", "--json"),
    "query": ("query", "select text, error, text as \"{text}\" from requests", "--run", "{run}"),
    "query csv": ("query", "select * from requests", "--csv", "--run", "{run}"),
    "query json": ("query", "select * from requests", "--json", "--run", "{run}"),
    "query wrong": ("query", "select {text} from requests", "--run", "{run}"),
    "export": ("export", "{run}", "--what", "requests"),
    "export jsonl": ("export", "{run}", "--what", "requests", "--format", "jsonl"),
    "export otlp": ("export", "{run}", "--format", "otlp"),
    "compare": ("compare", "{run}", "--baseline", "llamacpp"),
    "compare markdown": ("compare", "{run}", "--baseline", "llamacpp", "--markdown"),
    "list": ("list", "runs", "--out", "{above}"),
    "verify": ("verify", "{run}"),
    "claims": ("claims", "{run}"),
    "missing": ("report", "{run}/{text}"),
}  # fmt: skip


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    """A run of hostile texts in a folder of a hostile name."""
    above = tmp_path_factory.mktemp("stored") / f"x{ACTIVE}"
    above.mkdir()
    engine = Engine(
        f"x{ACTIVE}", title=TEXT, version=TEXT, track=TEXT.replace("/", "|"), text=TEXT, failing=(5,)
    )
    return make_run(above, Shape((engine, TWO[0]), (2,), requests=8)).path


def words(stored, command):
    return [word.format(run=stored, above=stored.parent, text=ACTIVE) for word in COMMANDS[command]]


def on_terminal(words):
    """All that a terminal was sent, bench's own colours left out."""
    leader, follower = pty.openpty()

    def read():
        said = b""
        with suppress(OSError):  # the end of a terminal is an error
            while data := os.read(leader, 65536):
                said += data
        return said

    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(read)
        terminal = os.ttyname(follower)
        try:
            forks.start(words, dict(os.environ), out=terminal, err=terminal)
        finally:
            os.close(follower)
        said = reading.result()
    os.close(leader)
    text = said.decode().replace("\r\n", "\n")
    assert "Traceback" not in text
    return COLOURS.sub("", text)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_is_sent_nothing_that_it_would_act_upon(stored, command):
    said = on_terminal(words(stored, command))
    assert len(said) > 10
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", said)


@pytest.mark.parametrize("command", ["query csv", "export"])
def test_other_programs_get_every_character_and_a_spreadsheet_no_formula(stored, command):
    done = bench_here(*words(stored, command))
    rows = list(csv.DictReader(io.StringIO(done.stdout, newline="")))
    assert {row["text"] for row in rows} == {f"'{TEXT}", OTHER, ""}
    assert {row["phase"] for row in rows} == {"warmup", "measure"}


@pytest.mark.parametrize("command", ["query json", "export jsonl"])
def test_json_has_texts_as_they_are(stored, command):
    text = bench_here(*words(stored, command)).stdout
    rows = json.loads(text) if command == "query json" else list(map(json.loads, text.splitlines()))
    assert {row["text"] for row in rows} == {TEXT, OTHER, ""}


def test_a_table_for_people_is_inert_in_a_pipe_too(stored):
    done = bench_here(*words(stored, "query"))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", done.stdout)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (-1, "-1"),
        (-0.5, "-0.5"),
        (-1e-9, "-1e-09"),
        (None, ""),
        ("-1", "-1"),
        ("+1.5e3", "+1.5e3"),
        ("-.5", "-.5"),
        ("plain", "plain"),
        ("a=b", "a=b"),
        ("=1+1", "'=1+1"),
        ("+1+cmd", "'+1+cmd"),
        ("-1-1", "'-1-1"),
        ("-", "'-"),
        ("- a list", "'- a list"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\n=1", "'\n=1"),
        ("\uff1d1", "'\uff1d1"),
        ('=HYPERLINK("http://x","y")', "'=HYPERLINK(\"http://x\",\"y\")"),
    ],
)  # fmt: skip
def test_numbers_stay_numbers_and_texts_are_no_formulas(value, written):
    stream = io.StringIO(newline="")
    write_csv(["=name"], [(value,)], stream)
    stream.seek(0)
    assert list(csv.reader(stream)) == [["'=name"], [written]]
