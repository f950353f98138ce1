"""Now: the date and time."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from handtools.testing.memory_toolbox import memory_toolbox

MOMENT = datetime(2031, 5, 6, 7, 8, 9, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.claim("now.weekday")
async def test_it_tells_the_date_the_zone_and_the_weekday():
    result = await memory_toolbox(clock=lambda: MOMENT).call("now", {})
    assert result.text == "2031-05-06T07:08:09+02:00 (Tuesday)"


async def test_utc_is_the_same_moment():
    result = await memory_toolbox(clock=lambda: MOMENT).call("now", {"zone": "utc"})
    assert datetime.fromisoformat(result.details.iso) == MOMENT
    assert datetime.fromisoformat(result.details.iso).tzinfo == UTC
