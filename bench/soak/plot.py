"""The samples of a soak as a picture: one small chart for each value, in SVG."""

from collections.abc import Sequence
from html import escape

from bench.soak.samples import Sample

CHARTS = {
    "memory_mb": "memory, MB",
    "handles": "open handles",
    "threads": "threads",
    "processes": "processes below it",
    "record_bytes": "records on disk, MB",
    "processor_ms": "processor time of a call, ms",
    "median_ms": "time of a call, median, ms",
    "p99_ms": "time of a call, 99th percentile, ms",
}
COLUMNS, WIDTH, HEIGHT, GAP = 2, 360, 110, 46


def drawn(samples: Sequence[Sample]) -> str:
    """The picture; each chart begins at zero, so that flat looks flat."""
    rows = -(-len(CHARTS) // COLUMNS)
    width, height = COLUMNS * (WIDTH + GAP) + GAP, rows * (HEIGHT + GAP) + GAP
    charts = [
        _chart(samples, name, title, GAP + n % COLUMNS * (WIDTH + GAP), GAP + n // COLUMNS * (HEIGHT + GAP))
        for n, (name, title) in enumerate(CHARTS.items())
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" font-size="11" fill="#333">'
    )
    title = f"<title>{samples[-1].calls:,} calls, sampled {len(samples)} times</title>"
    ground = f'<rect width="{width}" height="{height}" fill="#fff"/>'
    return "\n".join([head, title, ground, *charts, "</svg>", ""])


def _chart(samples: Sequence[Sample], name: str, title: str, left: int, top: int) -> str:
    scale = 2**20 if name == "record_bytes" else 1
    values = [getattr(sample, name) / scale for sample in samples]
    most, calls = max(*values, 0.001) * 1.1, samples[-1].calls
    points = " ".join(
        f"{left + sample.calls / calls * WIDTH:.1f},{top + HEIGHT - value / most * HEIGHT:.1f}"
        for sample, value in zip(samples, values, strict=True)
    )
    said = f"{escape(title)}: {values[0]:,.4g} first, {values[-1]:,.4g} last"
    return "\n".join(
        [
            f'<path d="M{left} {top}v{HEIGHT}h{WIDTH}" fill="none" stroke="#999"/>',
            f'<polyline points="{points}" fill="none" stroke="#06c" stroke-width="1.5"/>',
            f'<text x="{left}" y="{top - 6}">{said}</text>',
            f'<text x="{left + WIDTH}" y="{top + HEIGHT + 13}" text-anchor="end">{calls:,} calls</text>',
        ]
    )
