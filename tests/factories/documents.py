"""Documents of the model from the few keys that a test is about."""

from functools import cache

from msgspec import inspect
from msgspec.structs import fields, replace

from harness.model import Validity, as_json, from_json

_BLANK = {inspect.StrType: "", inspect.IntType: 0, inspect.FloatType: 0.0, inspect.BoolType: False}


def made(kind, given=None, **keys):
    """A document of this type: `given` and `keys` as JSON has them, what is not given blank or null."""
    return from_json(_filled(_type(kind), as_json({**(given or {}), **keys})), kind)


def changed(document, **keys):
    """The same with these keys, as JSON has them; what they hold is filled as in `made`."""
    types, hints = _keys(type(document))[0], _hints(type(document))
    given = {key: _filled(types[key], as_json(value)) for key, value in keys.items()}
    return replace(document, **{key: from_json(value, hints[key]) for key, value in given.items()})


@cache
def _type(kind):
    return inspect.type_info(kind)


@cache
def _hints(cls):
    return {field.name: field.type for field in fields(cls)}


@cache
def _keys(cls):
    """Type of each key, and the blank document."""
    fields = _type(cls).fields
    blank = {field.name: _blank(field.type) for field in fields if field.required}
    return {field.name: field.type for field in fields}, blank


def _filled(kind, given):
    if given is None or isinstance(given, str | int | float):
        return given

    match kind:
        case inspect.Metadata():
            return _filled(kind.type, given)
        case inspect.UnionType():
            inner = [one for one in kind.types if _fits(one, given)]
            return _filled(inner[0], given) if inner else given
        case inspect.StructType(array_like=False) if isinstance(given, dict):
            types, blank = _keys(kind.cls)
            return blank | {k: _filled(types[k], v) for k, v in given.items()}
        case inspect.DictType() if isinstance(given, dict):
            return {key: _filled(kind.value_type, value) for key, value in given.items()}
        case inspect.ListType() | inspect.VarTupleType() if isinstance(given, list | tuple):
            return [_filled(kind.item_type, value) for value in given]
    return given


def _fits(kind, given):
    if isinstance(kind, inspect.Metadata):
        return _fits(kind.type, given)
    lists = inspect.ListType | inspect.VarTupleType
    return isinstance(kind, inspect.StructType | inspect.DictType if isinstance(given, dict) else lists)


def _blank(kind):
    match kind:
        case inspect.Metadata():
            return _blank(kind.type)
        case inspect.UnionType():
            nullable = any(isinstance(one, inspect.NoneType) for one in kind.types)
            return None if nullable else _blank(kind.types[0])
        case inspect.StructType() if kind.cls is Validity:
            return {"verdict": "VALID", "reasons": []}
        case inspect.StructType():
            return _keys(kind.cls)[1]
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.EnumType():
            return next(iter(kind.cls))
        case inspect.DictType():
            return {}
        case inspect.ListType() | inspect.VarTupleType():
            return []
        case inspect.TupleType():
            return [_blank(one) for one in kind.item_types]
    return _BLANK[type(kind)]
