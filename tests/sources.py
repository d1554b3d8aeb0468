"""Sources as syntax trees: several rules of the code read all of them."""

import ast
import gc
import re
from functools import cache


@cache
def text_of(path):
    return path.read_text(encoding="utf-8")


@cache
def tree(path):
    """Parsed without the collector and frozen: it would go over the nodes of all trees again and again."""
    gc.disable()
    try:
        return ast.parse(text_of(path))
    finally:
        gc.freeze()
        gc.enable()


@cache
def words_of(path):
    return frozenset(re.findall(r"\w+", text_of(path)))


def naming(paths, words):
    """Paths of files whose text has one of these names: the syntax tree of no other file can have it."""
    return [path for path in paths if not words_of(path).isdisjoint(words)]
