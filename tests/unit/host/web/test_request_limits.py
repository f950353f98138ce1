"""One host is not asked too often."""

import pytest

from handtools.core.errors import RateLimited
from handtools.host.web.request_limits import MAX_REMEMBERED_HOSTS, RateLimiter


class Clock:
    """Time that passes when someone waits for it."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    async def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("anyio.sleep", made.pass_by)
    return made


async def test_a_burst_is_let_through_and_then_it_is_waited(clock):
    pace = RateLimiter(burst=3, window=5.0, clock=clock)
    times = []
    for _ in range(7):
        await pace.turn("a.example")
        times.append(clock.now - 1_000)
    assert times == [0, 0, 0, 5, 5, 5, 10]


async def test_hosts_do_not_wait_for_each_other(clock):
    pace = RateLimiter(burst=1, clock=clock)
    for number in range(MAX_REMEMBERED_HOSTS + 5):
        await pace.turn(f"{number}.example")
    assert clock.now == 1_000
    assert len(pace._asked) <= MAX_REMEMBERED_HOSTS + 1


async def test_a_host_that_wants_us_to_wait_is_left_alone_so_long(clock):
    pace = RateLimiter(clock=clock)
    pace.hold("a.example", 20)
    with pytest.raises(RateLimited) as said:
        await pace.turn("a.example")
    assert said.value.hint == "Try again in 20 s."
    await pace.turn("b.example")
    clock.now += 21
    await pace.turn("a.example")
