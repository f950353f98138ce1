# What people type while they work; `.ci/run` is the same, on a bare machine.
set shell := ["bash", "-euo", "pipefail", "-c"]
bin := ".venv/bin"

# List the recipes.
default:
    @just --list

# Make the environment from the lock.
install:
    [ -x {{bin}}/python ] || uv venv --quiet .venv
    uv pip install --python {{bin}}/python --require-hashes -r requirements/dev.txt
    uv pip install --python {{bin}}/python --no-deps -e . -e packages/full

# Style, types and import contracts.
check:
    {{bin}}/ruff check .
    {{bin}}/ruff format --check .
    {{bin}}/mypy
    {{bin}}/pyright
    {{bin}}/lint-imports

# Repair what can be repaired by machine.
fix:
    {{bin}}/ruff check --fix .
    {{bin}}/ruff format .

# Tests, or some of them: `just test tests/shape -x`.
test *options:
    {{bin}}/pytest {{options}}

# Property tests with 10,000 examples each.
nightly:
    HYPOTHESIS_PROFILE=nightly {{bin}}/pytest tests/property -n 2 --timeout 3600

# One bench: `just bench core --quick`.
bench name *options:
    {{bin}}/python -m bench {{name}} {{options}}

# Write the pages and snapshots that are made from the code.
docs:
    {{bin}}/python -m tests.docs.tool_pages
    {{bin}}/python -m tests.docs.walls_page
    {{bin}}/python -m tests.docs.systems_page
    {{bin}}/python -m tests.docs.adapters_page
    {{bin}}/python -m tests.docs.settings_page
    {{bin}}/python -m tests.docs.cli_page
    {{bin}}/python -m tests.docs.api_page
    {{bin}}/python -m tests.docs.licences
    {{bin}}/python -m tests.docs.review_picture
    {{bin}}/python -m tests.docs.moving_picture
    {{bin}}/pytest tests/snapshot -q -p no:randomly --update-snapshots

# Take the pictures of the report and the live view anew, in Chromium; look at them.
pictures:
    .ci/browser-packages
    {{bin}}/pytest tests/e2e/browser -q -k picture --update-pictures

# The pages of docs/ as a site in site/, readable from disk; broken links fail (docs/decisions/36-documentation-site-and-requirements.md).
site:
    .ci/site uv

# Resolve dependencies anew and export the lock: hashes, no hosts (docs/decisions/02-distributions-lock-and-image.md).
lock:
    uv lock --upgrade
    uv export -q --no-emit-workspace --all-extras --no-extra agent-client-protocol --no-extra agent-framework --no-extra anthropic --no-extra claude-agent-sdk --no-extra deepagents --no-extra fleet --no-extra google-adk --no-extra inspect-ai --no-extra langchain --no-extra openai-agents --no-extra pydantic-ai --no-extra strands --format requirements-txt > requirements/dev.txt
    echo uv | uv pip compile -q --generate-hashes --no-header --no-annotate - > requirements/uv.txt
    echo mkdocs-material | uv pip compile -q --python-version 3.11 --generate-hashes --no-header --no-annotate - > requirements/site.txt
    printf 'cyclonedx-bom\npip-audit\n' | uv pip compile -q --python-version 3.11 --generate-hashes --no-header --no-annotate - > requirements/supply-chain.txt

# Resolve the SDKs of the adapters anew, newest and floor: `just lock-adapters langchain`, or all.
lock-adapters *names:
    .ci/lock-adapters uv {{names}}

# The contract of the adapters with the real SDKs, newest and floor: `just adapters langchain langchain-floor`, or all.
adapters *names:
    .ci/adapters uv {{names}}

# The fleet with a real Ray and a real S3 server: `just fleet -k recovery`, or all.
fleet *options:
    .ci/fleet uv {{options}}

# Fuzz parsers: `just fuzz patch --seconds 3600`, `just fuzz --all`, with `--keep` for the corpus.
fuzz *options:
    .ci/fuzz uv {{options}}

# Resolve the fuzzer's environment anew.
lock-fuzz:
    uv pip compile -q --python {{bin}}/python --generate-hashes --no-header --no-annotate --upgrade pyproject.toml --extra mcp --extra media --extra web requirements/fuzz.in > requirements/fuzz.txt

# Resolve the fleet's environment anew.
lock-fleet:
    uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade pyproject.toml --extra fleet --extra cli --extra mcp requirements/fleet.in > requirements/fleet.txt

# Packages, the list of their parts, known weaknesses, some extras alone (docs/how-to/release.md).
supply-chain:
    .ci/supply-chain uv

# Every extra alone in a bare environment, from the packages in dist/: `just extras media`, or all.
extras *names:
    .ci/extras uv dist {{names}}

# Mistakes that the tests should notice: `just mutation --area undo --sample 40` (docs/explanation/mutation.md).
mutation *options:
    {{bin}}/python -m tests.mutation {{options}}

# Every goal of every bench, at the size of CI.
goals:
    {{bin}}/python -m bench all

# The tests with parts of Linux hidden: `just portable`, `just portable each` (with figures), `just portable whole`.
portable *which:
    .ci/portable {{which}}

# Gather changelog.d/ into CHANGELOG.md.
changelog version:
    {{bin}}/towncrier build --yes --version {{version}}

# Everything, as CI runs it.
ci:
    .ci/run
