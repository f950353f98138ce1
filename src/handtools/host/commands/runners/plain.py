"""Plain: no boundary at all; only killing and limits are the same as everywhere."""

from handtools.host.commands.launching import Launch


class PlainRunner:
    """The command runs as the user, with everything the user may do."""

    name = "plain"
    boundary = "No boundary: a command can do whatever this user can. It is ended completely, and limited."
    confined = False

    def available(self) -> str:
        """It works everywhere that processes do."""
        return ""

    def confine(self, launch: Launch) -> Launch:
        """As it is."""
        return launch
