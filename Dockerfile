# The MCP server for a mounted folder:
#   docker build -t handtools .
#   docker run -i --rm -v "$PWD:/work" handtools                     (stdio)
#   docker run --rm -p 8765:8765 -e HANDTOOLS_TOKEN -v "$PWD:/work" handtools \
#     serve --http 0.0.0.0:8765 --allow-host localhost -C /work        (HTTP)
FROM python:3.12-slim
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends bash bubblewrap git \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/handtools
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY src src
COPY packages packages
RUN pip install --no-cache-dir --no-compile '.[cli,mcp,media]' && pip install --no-cache-dir --no-deps packages/full \
    && useradd --create-home --uid 1000 tools
USER tools
ENV HANDTOOLS_STATE=/home/tools/state
WORKDIR /work
EXPOSE 8765
ENTRYPOINT ["handtools"]
CMD ["mcp", "/work"]
