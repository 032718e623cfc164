# Untried: nobody has built this yet. `make wheel bd-wheel` first: it takes the two files of dist/.
# Agents need a login (a key in the environment, say), a mounted repository, and Claude Code or OpenCode in an image on top.
# In most containers bubblewrap may not make a sandbox: `ashep install --security` says what holds then.
FROM python:3.12-slim-trixie
RUN apt-get update && apt-get install --yes --no-install-recommends bubblewrap git && rm -rf /var/lib/apt/lists/*
COPY requirements/base.txt dist/*.whl /tmp/ashep/
RUN pip install --no-cache-dir --require-hashes --only-binary :all: -r /tmp/ashep/base.txt \
    && pip install --no-cache-dir --no-deps --no-index /tmp/ashep/*.whl && rm -r /tmp/ashep \
    && useradd --create-home shepherd
USER shepherd
WORKDIR /work
ENTRYPOINT ["ashep"]
CMD ["--help"]
