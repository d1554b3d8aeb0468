"""Numbers of the command line. Python's own error names its functions, and not what was expected."""


def real_number(text: str) -> float:
    """ValueError says what the text is not."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def whole_number(text: str) -> int:
    """ValueError says what the text is not."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None
