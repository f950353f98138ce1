# The MCP server for a mounted folder:
#   docker build -t handtools .
#   docker run -i --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" handtools                         (stdio)
#   docker run --rm -p 127.0.0.1:8765:8765 -e HANDTOOLS_TOKEN --user "$(id -u):$(id -g)" -v "$PWD:/work" handtools \
#     serve --http 0.0.0.0:8765 --allow-host localhost -C /work                                     (HTTP)
ARG BASE=python:3.12-slim

FROM ${BASE} AS system
# A base that brings these already is taken as it is.
RUN { bwrap --version && git --version; } \
    || { apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends bash bubblewrap git \
    && rm -rf /var/lib/apt/lists/*; }

FROM system AS built
# pip reads these itself: an index of your own, or a page of wheels.
ARG PIP_INDEX_URL
ARG PIP_FIND_LINKS
ARG PIP_NO_INDEX
WORKDIR /opt/source
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY src src
COPY packages packages
RUN python3 -m venv /opt/handtools && /opt/handtools/bin/pip install --no-cache-dir . ./packages/full

FROM system
COPY --from=built /opt/handtools /opt/handtools
# Whoever owns the mounted folder may be the user: the home is open to any.
RUN useradd --create-home --user-group --uid 1000 tools && chmod 1777 /home/tools
USER tools
ENV PATH=/opt/handtools/bin:$PATH HOME=/home/tools HANDTOOLS_STATE=/home/tools/state
WORKDIR /work
EXPOSE 8765
ENTRYPOINT ["handtools"]
CMD ["mcp", "/work"]
