import errno

import pytest

from handtools.host.files.os_errors import os_error_as_tool_error


@pytest.mark.parametrize(
    "number", [errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EROFS, errno.EIO, errno.EMFILE]
)
def test_every_refusal_of_the_machine_has_a_next_step(number):
    assert os_error_as_tool_error(OSError(number, "refused"), "a").hint
