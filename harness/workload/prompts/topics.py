"""Topics whose texts can be distinguished, and questions whose answers match a regular expression."""

from random import Random

# Words of one topic only, so that a label is right or wrong beyond doubt.
TOPICS: dict[str, tuple[str, ...]] = {
    name: tuple(words.split())
    for name, words in {
        "sport": "match goal team player coach league score stadium champion tournament",
        "weather": "rain storm cloud sunshine wind forecast temperature snow thunder humidity",
        "food": "bread soup kitchen recipe cheese dinner chef oven butter restaurant",
        "travel": "flight airport hotel luggage passport train ticket tourist border journey",
        "finance": "bank loan interest market shares investor profit tax budget currency",
        "health": "doctor hospital patient medicine nurse fever treatment surgery vaccine clinic",
        "music": "song concert guitar piano orchestra melody singer album drum rhythm",
        "technology": "software computer server chip network database robot programmer keyboard algorithm",
    }.items()
}

_FRAMES = (
    "The {0} and the {1} were all that people talked about.",
    "First came the {0}, then the {1}, and after that the {2}.",
    "Nobody there had expected the {0} to change the {1} so much.",
    "Without the {0} there would have been no {1} this year.",
    "Everyone asked about the {0}, and about the {1} as well.",
    "A report of the {0} said more about the {1} than about the {2}.",
)

# Name, pattern, question. Every grammar engine reads such patterns: no anchors, no look-around.
PATTERNS = (
    ("date", r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])", "Give a date as YYYY-MM-DD."),
    ("time", r"([01][0-9]|2[0-3]):[0-5][0-9]", "Give a time of day as HH:MM."),
    ("colour", r"#[0-9a-f]{6}", "Give a colour as # and six hexadecimal digits."),
    ("version", r"[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}", "Give a version number of three parts."),
    ("ticket", r"[A-Z]{3}-[0-9]{4}", "Give a ticket number: three capital letters, a hyphen, four digits."),
)


def about(topic: str, sentences: int, random: Random) -> str:
    """Sentences with several words of the topic each."""
    parts = []
    for _ in range(sentences):
        words = random.sample(TOPICS[topic], 3)
        parts.append(random.choice(_FRAMES).format(*words))
    return " ".join(parts)
