"""Sources as syntax trees: several rules of the code read all of them."""

import ast
from functools import cache


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))
