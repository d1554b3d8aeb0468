"""The queues of the tests: unit tests wait for nothing, and only those of *time* make claims about time.

Unit tests compute. One that sleeps, polls or starts a process to wait for it belongs into tests/integration,
where six wait at once: here it would keep a core idle.

Tests outside the queue *time* compare no reading of a clock with a constant: see CONTRIBUTING.md. The check
reads the asserts of tests/unit and tests/integration. A reading is a difference with a call of a clock of
`time`, a name that such a difference was assigned to in the same function, and in tests/integration also what
a run measured: a name, key or attribute like `ttft_ms`, `send_lag_ns` or `failing_since_s`, a stamp like
`sent_ns`, and a difference with one. A constant is made of numbers and of names in capitals, in
`pytest.approx` as well. Lower bounds pass, because other load lengthens every wait and shortens none; so does
CPU time, which it adds little to. The check does not see a reading that another function returned, a limit
that raises (`subprocess.run(timeout=…)`), or a verdict that rests on time.
"""

import ast
import re
from pathlib import Path

import pytest

from tests.sources import naming, text_of, tree, words_of

TESTS = Path(__file__).resolve().parents[1]
CLOCKS = {f"{name}{unit}" for name in ("monotonic", "perf_counter", "time") for unit in ("", "_ns")}
CALLED = re.compile(rf"\b({'|'.join(CLOCKS)})\s*\(")
MEASURED = re.compile(
    r"(.*_)?(at|since|ttft|tpot|itl|e2e|lag|gap|service|waited|took|lasted|spent|duration)(_\w+)?_(ns|us|ms|s)"
)
STAMP = re.compile(r"\w+_ns")


def is_clock(node):
    called = node.func if isinstance(node, ast.Call) else None
    return getattr(called, "attr", getattr(called, "id", "")) in CLOCKS


def subtracted(node):
    """Both sides of every subtraction in it."""
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub):
            yield from (part.left, part.right)


def is_difference(node):
    """A subtraction in which a clock is read."""
    return any(is_clock(side) for side in subtracted(node))


def is_mark(node):
    """Arguments are left out, which are long where they are cases of a test."""
    return ast.unparse(getattr(node, "func", node)).startswith("pytest.mark.time")


def is_constant(node):
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func).rpartition(".")[2]
        return name == "approx" and all(map(is_constant, node.args))
    if isinstance(node, ast.BinOp):
        return is_constant(node.left) and is_constant(node.right)
    if isinstance(node, ast.UnaryOp):
        return is_constant(node.operand)
    if isinstance(node, ast.Name):
        return node.id.isupper()
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def words(node):
    """The names, keys and attributes in an expression."""
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value
        else:
            yield getattr(one, "id", getattr(one, "attr", ""))


def is_of_stamps(node):
    return any(map(STAMP.fullmatch, (word for side in subtracted(node) for word in words(side))))


def readings(function, measured):
    """Names that a difference of clocks was assigned to, or of stamps where they are `measured`."""
    assigned = [one for one in ast.walk(function) if isinstance(one, ast.Assign)]
    taken = [one for one in assigned if is_difference(one.value) or (measured and is_of_stamps(one.value))]
    targets = (target for one in taken for target in one.targets)
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def bounded(compare):
    """(what is kept small or near, what it is compared with) of each comparison in a chain."""
    sides = [compare.left, *compare.comparators]
    for left, op, right in zip(sides, compare.ops, sides[1:], strict=False):
        if isinstance(op, ast.Lt | ast.LtE):
            yield left, right
        elif isinstance(op, ast.Gt | ast.GtE):
            yield right, left
        elif isinstance(op, ast.Eq) and isinstance(right, ast.Call):  # of approx
            yield left, right


def unmarked(module):
    """Its functions outside the queue *time*."""
    assigned = (one for one in module.body if isinstance(one, ast.Assign))
    marks = [one.value for one in assigned if ast.unparse(one.targets[0]) == "pytestmark"]
    if any(is_mark(mark) for value in marks for mark in getattr(value, "elts", [value])):
        return []
    functions = (one for one in ast.walk(module) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
    return [one for one in functions if not any(map(is_mark, one.decorator_list))]


def bounded_by_a_constant(function):
    """(comparison, what it bounds) of the asserts."""
    asserts = (one for one in ast.walk(function) if isinstance(one, ast.Assert))
    for compare in (one for test in asserts for one in ast.walk(test.test) if isinstance(one, ast.Compare)):
        yield from ((compare, small) for small, limit in bounded(compare) if is_constant(limit))


def breaches(module, measured):
    """Line and text of every comparison that belongs into the queue *time*."""
    found = {}
    for function in unmarked(module):
        bounds = list(bounded_by_a_constant(function))
        known = readings(function, measured) if bounds else set()
        for compare, small in bounds:
            said = set(words(small))
            by_run = measured and any(one.fullmatch(word) for one in (MEASURED, STAMP) for word in said)
            if said & known or by_run or is_difference(small):
                found[compare.lineno] = ast.unparse(compare)
    return sorted(found.items())


def may_read(path, measured):
    """Whether a clock is called in the text of a file, or something `measured` or a stamp is named."""
    named = (one.fullmatch(word) for word in words_of(path) for one in (MEASURED, STAMP))
    return CALLED.search(text_of(path)) or (measured and any(named))


def test_only_tests_of_time_compare_a_clock_with_a_constant():
    unit, integration = (sorted(TESTS.glob(f"{queue}/**/*.py")) for queue in ("unit", "integration"))
    assert len(unit) + len(integration) > 300
    read = [(path, path in integration) for path in (*unit, *integration)]
    found = {str(path): breaches(tree(path), measured) for path, measured in read if may_read(path, measured)}
    assert len(found) > 30
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "assert time.monotonic() - began < 5",
        "assert 0.1 < monotonic_ns() - began < 5e9",
        "took = time.perf_counter() - began; assert took <= LIMIT_S",
        "assert 3 > time.monotonic() - began",
        "assert cell['ttft_ms']['p50'] == pytest.approx(400, abs=30)",
        "assert 19 < np.median(ttft_ms) < 40",
        "assert stats.send_lag_ms.max < 2 * 10",
        "assert np.all(rows['sent_ns'] - rows['intended_ns'] < 20 * MS)",
        "lasted = row.end_ns - row.sent_ns; assert lasted < 5e9",
        "assert np.all(rows['sent_ns'] < 300_000_000)",
        "assert 1.5 < engine.failing_since_s < 3.2",
        "assert longest.at_s == pytest.approx(0.55, abs=0.3)",
    ],
)
def test_a_bound_on_time_is_found(line):
    source = f"def test_it():\n    {line}\n"
    assert [number for number, _ in breaches(ast.parse(source), measured=True)] == [2]
    assert breaches(ast.parse(f"@pytest.mark.time\n{source}"), measured=True) == []
    assert breaches(ast.parse(f"pytestmark = [pytest.mark.time]\n{source}"), measured=True) == []


@pytest.mark.parametrize(
    "line",
    [
        "assert time.monotonic() < give_up",
        "assert time.monotonic() - began >= 0.05",
        "assert cell['ttft_ms']['p50'] >= 400",
        "assert cell['ttft_ms']['p50'] < other['ttft_ms']['p50']",
        "assert len(cells) < 5",
        "assert 'ttft_ms' in cells",
    ],
)
def test_other_comparisons_pass(line):
    assert breaches(ast.parse(f"def test_it():\n    {line}\n"), measured=True) == []


WAITING = {"sleep", "until", "in_time", "Popen"}


def waits(module):
    """The calls in it that wait for something else than the processor."""
    called = (one.func for one in ast.walk(module) if isinstance(one, ast.Call))
    return sorted(WAITING & {getattr(function, "attr", getattr(function, "id", "")) for function in called})


def test_no_unit_test_waits():
    files = naming(sorted((TESTS / "unit").glob("**/*.py")), WAITING)
    assert {str(path): waits(tree(path)) for path in files if waits(tree(path))} == {}


@pytest.mark.parametrize("line", ["time.sleep(1)", "sleep(1)", "until(f, 's')", "subprocess.Popen(['x'])"])
def test_a_call_that_waits_is_found(line):
    assert len(waits(ast.parse(line))) == 1
    assert waits(ast.parse("asleep(1); clock.slept; Popen")) == []
