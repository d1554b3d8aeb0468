from harness.mockserver.cache import PrefixCache


def prompt(text: str) -> list[str]:
    return list(text)


def test_whole_blocks_from_the_start_are_found() -> None:
    cache = PrefixCache(capacity_tokens=100, block_tokens=4)
    assert cache.claim(prompt("aaaabbbbcc")) == 0
    assert cache.claim(prompt("aaaabbbbccdd")) == 8
    assert cache.claim(prompt("aaaabbbbccddx")) == 12
    assert cache.claim(prompt("aaaaXbbbccdd")) == 4
    assert cache.claim(prompt("bbbbccdd")) == 0, "a block counts only behind the same prefix"
    assert cache.claim(prompt("aaa")) == 0


def test_the_last_token_is_never_served_from_the_cache() -> None:
    cache = PrefixCache(capacity_tokens=100, block_tokens=4)
    cache.claim(prompt("aaaabbbb"))
    assert cache.claim(prompt("aaaabbbb")) == 4
    assert cache.claim([]) == 0


def test_the_least_recently_used_goes_first_and_a_tail_before_its_prefix() -> None:
    cache = PrefixCache(capacity_tokens=12, block_tokens=4)
    cache.claim(prompt("aaaabbbb"))
    cache.claim(prompt("cccc"))
    cache.claim(prompt("aaaabbbbx"))  # used again, so that cccc is the oldest
    cache.claim(prompt("dddd"))
    assert cache.claim(prompt("ccccx")) == 0  # and puts out bbbb, the older tail
    assert cache.claim(prompt("aaaabbbbx")) == 4


def test_a_prompt_larger_than_the_cache_keeps_its_beginning() -> None:
    cache = PrefixCache(capacity_tokens=8, block_tokens=4)
    cache.claim(prompt("aaaabbbbccccdddd"))
    assert cache.used_share == 1.0
    assert cache.claim(prompt("aaaabbbbccccdddd")) == 8


def test_cleared_or_without_capacity_nothing_is_found() -> None:
    cache = PrefixCache(capacity_tokens=100, block_tokens=4)
    cache.claim(prompt("aaaabbbb"))
    cache.clear()
    assert cache.used_share == 0
    assert cache.claim(prompt("aaaabbbb")) == 0
    switched_off = PrefixCache(capacity_tokens=0, block_tokens=4)
    switched_off.claim(prompt("aaaabbbb"))
    assert switched_off.claim(prompt("aaaabbbb")) == 0
    assert switched_off.used_share == 0
