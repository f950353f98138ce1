"""Programs that a test starts have the same parts of Linux hidden as the test."""

import os
import sys

sys.path.insert(0, os.environ["HANDTOOLS_TEST_ROOT"])
from tests.portable.hiding import hide

hide(os.environ["HANDTOOLS_TEST_HIDDEN"].split(","))
sys.path.pop(0)
