"""Lists of ports: what is written is what they contain."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.web.host_access import MAX_PORT, BadPort, parse_port_ranges

PORTS = st.integers(1, MAX_PORT)


@given(st.lists(st.tuples(PORTS, PORTS).map(sorted), max_size=4), PORTS)
def test_a_list_contains_what_its_ranges_do(ranges, port):
    written = [f"{first}-{last}" if first != last else str(first) for first, last in ranges]
    assert parse_port_ranges(written).contain(port) == any(first <= port <= last for first, last in ranges)


@given(st.text(alphabet="0123456789-+ _٣x", max_size=12))
def test_anything_else_is_refused_or_means_real_ports(written):
    with contextlib.suppress(BadPort):
        ((first, last),) = parse_port_ranges([written]).ranges
        assert 0 < first <= last <= MAX_PORT
        assert written in {str(first), f"{first}-{last}"}
