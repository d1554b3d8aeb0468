from harness.report.wording import Table, aligned, listing, plain, short_names


def test_foreign_text_is_one_harmless_line():
    assert plain("a\n\tb\x1b[31mred\x07") == "a b�[31mred�"
    assert plain("x" * 500) == "x" * 299 + "…"


def test_names_are_cut_at_their_ends_and_never_alike():
    assert short_names(["a" * 30, "b"], 9) == {"a" * 30: "aaaaaaaa…", "b": "b"}
    eager, flash = "llamacpp@no-prefix-cache-eager", "llamacpp@no-prefix-cache-flash"
    assert list(short_names([eager, flash], 20).values()) == ["llamacpp@no-prefix…r", "llamacpp@no-prefix…h"]
    alone = "vllm@no-prefix-cache-and-more"
    assert short_names([eager, flash, alone], 20)[alone] == "vllm@no-prefix-cach…", "it clashes with none"
    middle = [f"{'a' * 50}{sign}{'a' * 50}" for sign in "xy"]
    assert set(short_names(middle, 20).values()) == {"a" * 19 + "…"}, "no cut tells them apart"
    assert short_names([eager, *middle, flash], 20)[flash] == "llamacpp@no-prefix…h", "nor takes others along"
    numbered = [f"a-very-long-name-{number}@and-a-variant" for number in range(12)]
    assert len(set(short_names(numbered, 20).values())) == 12
    assert max(map(len, short_names(numbered, 20).values())) == 20
    assert short_names(["a\x1bb"], 9) == {"a\x1bb": "a�b"}


def test_lists_read_as_english():
    assert [listing(list(words)) for words in ("", "a", "ab", "abc")] == ["", "a", "a and b", "a, b and c"]


def test_the_head_of_a_wide_table_has_a_line_for_each_word():
    narrow = Table("speeds", ("URL", "TTFT p50 ms"), [("http://a", "12.5")])
    assert list(narrow.lines(80)) == ["", "speeds", "URL       TTFT p50 ms", "http://a         12.5"]
    head = ("URL", *["output tok/s"] * 6)
    _, _, *heads, row = Table("speeds", head, [("http://a", *["345"] * 6)]).lines(80)
    assert [line.split() for line in heads] == [["output"] * 6, ["URL", *["tok/s"] * 6]]
    assert {len(line) for line in (*heads, row)} == {len("http://a") + 6 * len("  output")}


def test_a_table_that_is_too_wide_is_broken_into_blocks_with_its_first_column():
    rows = [("metric", "old", "new", "verdict"), ("TTFT", "172", "71.2", "faster")]
    assert list(aligned(rows, 19, figures=False)) == [
        "metric  old  new",
        "TTFT    172  71.2",
        "",
        "metric  verdict",
        "TTFT    faster",
    ]
    assert (
        list(aligned(rows, 26))
        == list(aligned(rows))
        == ["metric  old   new  verdict", "TTFT    172  71.2   faster"]
    )
    heads = [("", "sent late", ""), ("load", "p99", "validity"), ("8 streams", "0.3", "VALID")]
    assert list(aligned(heads, 20))[3:] == ["", "load       validity", "8 streams     VALID"]


def test_names_that_a_cut_makes_alike_get_half_the_line():
    names = [f"llamacpp@q8_0 / {b}, between requests of c4" for b in ("llamacpp", "itself")]
    rows = [(name, "358", "-1.5 to +3.9", "same") for name in names]
    table = Table("accuracy", ("between", "compared", "points", "verdict"), rows)
    assert list(table.lines(50))[2:] == [
        "between                    compared        points",
        "llamacpp@q8_0 / llamacpp…       358  -1.5 to +3.9",
        "llamacpp@q8_0 / itself, …       358  -1.5 to +3.9",
        "",
        "between                    verdict",
        "llamacpp@q8_0 / llamacpp…     same",
        "llamacpp@q8_0 / itself, …     same",
    ]
