import errno

import pytest

from handtools.host.faults import fault


@pytest.mark.parametrize(
    "number", [errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EROFS, errno.EIO, errno.EMFILE]
)
def test_every_refusal_of_the_machine_has_a_next_step(number):
    assert fault(OSError(number, "refused"), "a").hint
