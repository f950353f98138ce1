from bench.fleet import million_a_day
from bench.fleet.million_a_day import Load, measured, table


def test_the_plan_is_made_from_what_was_measured():
    assert million_a_day.PAGE.read_text("utf-8") == million_a_day.page()


def test_twice_as_many_workspaces_need_twice_the_workers():
    constants = measured()
    once, twice = (table(Load(workspaces=count), constants) for count in (864_000, 1_728_000))
    assert "| workers by slots | 30 |" in once
    assert "| workers by slots | 60 |" in twice


def test_a_constant_that_was_not_measured_is_said_to_be_so(tmp_path):
    rows = million_a_day.FIGURES.read_text("utf-8").splitlines()
    (tmp_path / "figures").write_text("\n".join(row for row in rows if "kB" not in row))
    assert "| stored a day, and in 30 days | not measured |" in table(
        Load(), measured(tmp_path / "figures")
    )
    assert "| stored a day, and in 30 days | not measured |" not in table(Load(), measured())
