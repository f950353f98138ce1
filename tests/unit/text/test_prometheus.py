from handtools.text.prometheus import TextMetricRegistry


def test_metrics_are_rendered_with_their_labels_in_order():
    registry = TextMetricRegistry()
    calls = registry.create_counter("calls_total", "Calls.", ("tool", "status"))
    running = registry.create_gauge("running", "Running calls.")
    calls.inc(1, {"tool": "read", "status": "ok"})
    calls.inc(1, {"tool": "edit", "status": "ok"})
    calls.inc(1, {"tool": "read", "status": "ok"})
    running.set(0.5)
    assert registry.text() == (
        "# HELP calls_total Calls.\n"
        "# TYPE calls_total counter\n"
        'calls_total{tool="edit",status="ok"} 1\n'
        'calls_total{tool="read",status="ok"} 2\n'
        "# HELP running Running calls.\n"
        "# TYPE running gauge\n"
        "running 0.5\n"
    )


def test_a_histogram_counts_each_value_in_all_larger_buckets():
    registry = TextMetricRegistry()
    waits = registry.create_seconds_histogram("wait_seconds", "Waits.")
    waits.observe(0.1)
    waits.observe(1000.0)
    rows = registry.text().splitlines()
    assert 'wait_seconds_bucket{le="0.02"} 0' in rows
    assert 'wait_seconds_bucket{le="0.1"} 1' in rows
    assert 'wait_seconds_bucket{le="600.0"} 1' in rows
    assert 'wait_seconds_bucket{le="+Inf"} 2' in rows
    assert rows[-2:] == ["wait_seconds_sum 1000.1", "wait_seconds_count 2"]
