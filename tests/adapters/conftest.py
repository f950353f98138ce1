"""The suites need an SDK each, in an environment of its own: `.ci/adapters` names it; else none is collected."""

import os

collect_ignore_glob = [] if os.environ.get("HANDTOOLS_ADAPTER") else ["test_*.py"]
