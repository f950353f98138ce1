"""The repeat guard: the same failing call again gets a note, then a stop."""

import json
from collections import OrderedDict

from handtools.core.call import Call
from handtools.core.errors import Repeated

NOTE_AFTER = 3
STOP_AFTER = 6
REMEMBERED = 512


class RepeatGuard:
    """Counts failures in a row of the same words, by session and agent."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, int] = OrderedDict()

    def check(self, call: Call) -> None:
        """Raise once the same call has failed too often."""
        if not self._failures:
            return
        failed = self._failures.get(_key(call), 0)
        if failed >= STOP_AFTER:
            raise Repeated(
                f"This same call has failed {failed} times; it was not run again.",
                hint="Change the arguments, or find out first what is there now.",
            )

    def settle(self, call: Call, *, ok: bool) -> str:
        """Count; gives back a note for the model when it is going round in circles."""
        if ok and not self._failures:
            return ""
        key = _key(call)
        if ok:
            self._failures.pop(key, None)
            return ""
        failed = self._failures.pop(key, 0) + 1
        self._failures[key] = failed
        while len(self._failures) > REMEMBERED:
            self._failures.popitem(last=False)
        return f"\n(The same call has now failed {failed} times in a row.)" if failed >= NOTE_AFTER else ""


def _key(call: Call) -> str:
    args = json.dumps(dict(call.args), sort_keys=True, default=str)
    return f"{call.session_key}\0{call.agent}\0{call.tool}\0{hash(args)}"
