import time

import pytest

from handtools.text.token_estimate import estimate_tokens

PROSE = "The quick brown fox jumps over the lazy dog, and then it went home to sleep. " * 20
CODE = "def f(self, x: int) -> str:\n    if x > 10:\n        return self.names[x]\n" * 20
JSON = '{"id":17,"name":"n17","ok":true},' * 20
CHINESE = "删除之前检查缓冲区的大小" * 20
RUSSIAN = "Проверяет размер буфера перед удалением. " * 20


def test_nothing_costs_nothing():
    assert estimate_tokens("") == 0


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [(PROSE, 3.3, 4.5), (CODE, 2.3, 3.6), (JSON, 1.4, 2.6), (CHINESE, 0.7, 1.0), (RUSSIAN, 1.5, 2.5)],
)
def test_characters_per_token_are_plausible_and_rather_few(text: str, least: float, most: float):
    assert least <= len(text) / estimate_tokens(text) <= most


def test_a_large_text_is_estimated_in_a_blink():
    durations = []
    for _ in range(10):
        start = time.perf_counter()
        estimate_tokens((CODE * 80)[:100_000])
        durations.append(time.perf_counter() - start)
    assert min(durations) < 0.003
