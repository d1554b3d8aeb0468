import csv
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import SpecError
from harness.workload.traces import read_dataset

CHAT = [
    {"from": "human", "value": "one"},
    {"from": "gpt", "value": "first answer"},
    {"from": "human", "value": "two"},
    {"from": "gpt", "value": "second answer"},
]


@pytest.fixture
def file(tmp_path):
    def write(value):
        path = tmp_path / "prompts"
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return path

    return write


def test_sharegpt_first_question_and_its_answer(file):
    (prompt,) = read_dataset(file([{"id": "a", "conversations": CHAT}])).prompts
    assert prompt.messages == (("user", "one"),)
    assert prompt.answer == "first answer"


@pytest.mark.parametrize("turns", [2, 9])
def test_more_turns_hold_the_answers_of_the_file(file, turns):
    (prompt,) = read_dataset(file([{"conversations": CHAT}]), turns=turns).prompts
    assert [role for role, _ in prompt.messages] == ["user", "assistant", "user"]
    assert prompt.answer == "second answer"


def test_a_leading_answer_is_left_out_and_a_system_prompt_kept(file):
    said = [{"from": "system", "value": "be brief"}, {"from": "gpt", "value": "hi"}, *CHAT[:1]]
    (prompt,) = read_dataset(file([{"conversations": said}])).prompts
    assert prompt.messages == (("system", "be brief"), ("user", "one"))
    assert prompt.answer is None


def test_plain_lines(file):
    lines = [
        {"prompt": "a", "output_tokens": 7},
        {"prompt": "b", "system": "s"},
        {"messages": [{"role": "user", "content": "c"}]},
    ]
    dataset = read_dataset(file("\n".join(map(json.dumps, lines))))
    assert dataset.format == "jsonl"
    assert [prompt.output_tokens for prompt in dataset.prompts] == [7, None, None]
    assert dataset.prompts[1].messages == (("system", "s"), ("user", "b"))


@pytest.mark.parametrize("key", ["messages", "conversations"])
def test_a_system_prompt_of_the_line_goes_before_a_conversation_without_one(file, key):
    own = [{"from": "system", "value": "be brief"}, *CHAT]
    lines = [{"system": "s", key: CHAT, "output_tokens": 5}, {"system": "s", key: own}]
    first, second = read_dataset(file(lines), turns=2).prompts
    assert first.messages[:2] == (("system", "s"), ("user", "one"))
    assert (first.answer, first.output_tokens) == ("second answer", 5)
    assert second.messages[:2] == (("system", "be brief"), ("user", "one"))


def test_bad_entries_are_counted(file):
    entries = [
        {"conversations": CHAT},
        {"conversations": []},
        {"conversations": [CHAT[0], CHAT[0]]},
        {"conversations": [{"from": "alien", "value": "x"}]},
        {"conversations": [{"from": "human", "value": " "}]},
        {"conversations": "x"},
        {"prompt": "x", "output_tokens": 0},
        {"prompt": "x", "output_tokens": 10**30},
        7,
    ]
    dataset = read_dataset(file(entries))
    assert len(dataset) == len(dataset.prompts) == 2
    assert sum(dataset.skipped.values()) == 7
    assert dataset.skipped["output_tokens that is not a whole number from 1 to 10,000,000"] == 2
    assert dataset.facts()["skipped"]["no user turn"] == 1


def test_questions_of_spec_bench_and_speed_bench(file):
    lines = [
        {"question_id": 81, "category": "writing", "turns": ["first", "second"], "reference": []},
        {"category": "multi.turn\n", "turns": ["third"]},
        {"category": 7, "prompt": "fourth"},
    ]
    dataset = read_dataset(file("\n".join(map(json.dumps, lines))))
    assert [prompt.messages for prompt in dataset.prompts] == [
        (("user", text),) for text in ("first", "third", "fourth")
    ]
    assert [prompt.category for prompt in dataset.prompts] == ["writing", "multi_turn", ""]


@pytest.mark.parametrize(
    ("line", "turns", "reason"),
    [
        ({"turns": []}, 1, "turns without a text"),
        ({"turns": [" "]}, 1, "turns without a text"),
        ({"turns": "x"}, 1, "turns without a text"),
        ({"turns": ["a", "b"]}, 2, "turns without answers"),
        (
            {"turns": ["FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING SPECDEC_BENCH"]},
            1,
            "the placeholder of SPEED-Bench",
        ),
    ],
)
def test_questions_that_cannot_be_sent_are_counted(file, line, turns, reason):
    (counted,) = read_dataset(file([line, {"prompt": "x"}]), turns=turns).skipped
    assert counted.startswith(reason)


SCHEMA = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
WRAPPED = {"type": "json_schema", "json_schema": {"name": "bill", "schema": SCHEMA}}


def test_a_schema_is_of_the_line_or_of_a_request_of_a_batch(file):
    chat = [("system", "be brief"), ("user", "one"), ("assistant", "two"), ("user", "three")]
    messages = [{"role": role, "content": text} for role, text in chat]
    lines = [
        {"prompt": "a", "schema": SCHEMA},
        {"prompt": "b", "json_schema": SCHEMA, "output_tokens": 7},
        {"prompt": "c", "response_format": {"type": "text"}},
        {"custom_id": "1", "body": {"messages": messages, "max_tokens": 9, "response_format": WRAPPED}},
    ]
    prompts = read_dataset(file("\n".join(map(json.dumps, lines)))).prompts
    assert [prompt.schema for prompt in prompts] == [SCHEMA, SCHEMA, None, SCHEMA]
    assert len({id(prompt.schema) for prompt in prompts}) == 2
    assert [prompt.output_tokens for prompt in prompts] == [None, 7, None, 9]
    assert prompts[-1].messages == tuple(chat)


@pytest.mark.parametrize("form", [{"schema": "{"}, {"response_format": {"type": "json_object"}}])
def test_a_form_that_cannot_be_asked_for_is_counted(file, form):
    lines = [{"prompt": "a"}, {"prompt": "b", **form}]
    dataset = read_dataset(file("\n".join(map(json.dumps, lines))))
    assert dataset.skipped == {"a schema that is not a JSON object": 1}


def test_columns_of_csv_are_the_keys_of_lines(file):
    table = io.StringIO(newline="")
    rows = [("id", "prompt", "system", "output_tokens", "schema")]
    rows += [("1", 'say "x",\nplease', "", "12", json.dumps(SCHEMA)), ("2", "b", "be brief", "", "")]
    csv.writer(table).writerows([*rows, ("3", "c", "", "many", ""), ("4", "d", "", "", "{")])
    dataset = read_dataset(file(table.getvalue()))
    first, second = dataset.prompts
    assert dataset.format == "csv"
    assert first.messages == (("user", 'say "x",\nplease'),)
    assert (first.output_tokens, first.schema) == (12, SCHEMA)
    assert second.messages == (("system", "be brief"), ("user", "b"))
    assert (second.output_tokens, second.schema) == (None, None)
    assert sum(dataset.skipped.values()) == 2


def test_a_message_of_parts_is_their_text(file):
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    texts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    contents = [texts, [*texts, image], []]
    dataset = read_dataset(file([{"messages": [{"role": "user", "content": each}]} for each in contents]))
    assert [prompt.messages for prompt in dataset.prompts] == [(("user", "a\nb"),)]
    assert dataset.skipped == {"a message with a part that is no text": 1, "a message without text": 1}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_prompt_of_csv_may_be_long_and_columns_apart_by_other_marks(file, separator):
    long = "word, " * 40_000
    table = io.StringIO(newline="")
    csv.writer(table, delimiter=separator).writerows([("output_tokens", "prompt"), (7, long), (8, "b;\tc")])
    dataset = read_dataset(file(table.getvalue()))
    assert (dataset.format, dataset.skipped) == ("csv", {})
    assert [prompt.messages[0][1] for prompt in dataset.prompts] == [long, "b;\tc"]
    assert [prompt.output_tokens for prompt in dataset.prompts] == [7, 8]


@pytest.mark.parametrize("prompt", ["word " * 40_000, "a,prompt,b"])
def test_a_line_of_json_is_no_head_of_csv(file, prompt):
    dataset = read_dataset(file(json.dumps({"prompt": prompt})))
    assert (dataset.format, len(dataset)) == ("jsonl", 1)


def test_schemas_and_categories_are_both_classes(file):
    lines = [{"prompt": "a", "schema": SCHEMA}, {"prompt": "b", "category": "math"}]
    with pytest.raises(SpecError, match="has categories and schemas"):
        read_dataset(file("\n".join(map(json.dumps, lines))))


def test_categories_are_classes_and_so_not_many(file):
    lines = [{"prompt": "x", "category": f"title {number}"} for number in range(65)]
    assert len(read_dataset(file(lines[:64]))) == 64
    with pytest.raises(SpecError, match="has 65 categories"):
        read_dataset(file(lines))


@pytest.mark.parametrize("text", ["", "[]", "[1, 2]", "{", "[{"])
def test_a_file_without_a_prompt_is_one_error(file, text):
    with pytest.raises(SpecError, match="holds no usable prompt"):
        read_dataset(file(text))


anything = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    *("conversations", "messages", "from", "role", "value", "content", "prompt"),
                    *("turns", "category"),
                ]
            ),
            st.one_of(inner, st.sampled_from(["human", "gpt", "user", "system"])),
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=2 * settings().max_examples)
@given(entries=st.lists(anything, max_size=5), turns=st.integers(1, 4))
def test_no_file_breaks_the_reader(tmp_path_factory, entries, turns):
    path = tmp_path_factory.mktemp("any") / "prompts"
    path.write_text(json.dumps(entries))
    try:
        dataset = read_dataset(path, turns=turns)
    except SpecError:
        return
    assert len(dataset.prompts) + sum(dataset.skipped.values()) == len(entries)
    for prompt in dataset.prompts:
        assert prompt.messages[-1][0] == "user"
