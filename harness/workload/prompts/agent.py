"""Sessions of an agent: prefixes inside prefixes, and turns that bring the results of tool calls."""

from collections.abc import Iterator
from itertools import repeat
from random import Random
from typing import NamedTuple

from harness.records.request_table import Expected, Part
from harness.spec.scenario.synthetic import Agent
from harness.workload.prompts.request import ChatRequest, Message, Tools
from harness.workload.prompts.shared import Zipf
from harness.workload.prompts.text import TextMaker

_SYSTEM = -1  # id of its part; tasks are the parts from 0 on


class Tool(NamedTuple):
    name: str
    about: str
    schema: dict[str, object]

    @property
    def definition(self) -> dict[str, object]:
        """Definition as a request to the Chat Completions API has it."""
        function = {"name": self.name, "description": self.about, "parameters": self.schema}
        return {"type": "function", "function": function}


def _tool(name: str, about: str, **arguments: dict[str, object]) -> Tool:
    schema = {
        "type": "object",
        "properties": arguments,
        "required": list(arguments),
        "additionalProperties": False,
    }
    return Tool(name, about, schema)


_TOOLS = (
    _tool(
        "search_notes",
        "Searches the notes and returns the ones that fit best.",
        query={"type": "string", "description": "words to look for", "maxLength": 60},
        limit={"type": "integer", "minimum": 1, "maximum": 9},
    ),
    _tool(
        "read_record",
        "Returns one record of the given table.",
        table={"type": "string", "enum": ["people", "places", "orders"]},
        record={"type": "integer", "minimum": 1, "maximum": 9999},
    ),
    _tool(
        "send_message",
        "Sends a short message to a person.",
        to={"type": "string", "maxLength": 30},
        text={"type": "string", "maxLength": 80},
    ),
)

TOOLS = tuple(tool.definition for tool in _TOOLS)
_SCHEMAS = {tool.name: tool.schema for tool in _TOOLS}
_CALL = Expected("tool_call", _SCHEMAS, "tool_call")


def agent(spec: Agent, count: int, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    """Yields sessions one after another; the last may be cut short. Questions and results are unique."""
    (system,) = texts.make([spec.system_tokens], random)
    # The empty line after a task belongs to it.
    tasks = [f"{text}\n\n" for text in texts.make([spec.task_tokens] * spec.tasks, random)]
    lengths = texts.count(tasks)
    paths = [(Part(_SYSTEM, spec.system_tokens), Part(task, length)) for task, length in enumerate(lengths)]
    popular, choice = Zipf(spec.tasks, spec.zipf_exponent), Random(random.random())
    tools = Tools(TOOLS, spec.tool_choice)

    def turns() -> Iterator[tuple[int, int, int, str]]:
        task = 0
        for index, text in enumerate(texts.stream(repeat(spec.result_tokens, count), random)):
            session, turn = divmod(index, spec.turns)
            task = popular.draw(choice) if turn == 0 else task
            yield session, turn, task, text if turn else tasks[task] + text

    # Text after a task may have other tokens than alone. A result is alone, and as long as it was made.
    counted = texts.counted(turns(), lambda turn: "" if turn[1] else turn[3])
    for (session, turn, task, text), together in counted:
        messages: tuple[Message, ...] = (("tool", text),)
        shared: tuple[Part, ...] = ()
        tokens = spec.result_tokens
        if turn == 0:
            messages = (("system", system), ("user", text))
            tokens = spec.system_tokens + together
            shared = paths[task]
        yield ChatRequest(
            messages,
            spec.output_tokens,
            tokens,
            shared=shared,
            session=session,
            turn=turn,
            tools=tools,
            expected=_CALL,
        )
