"""What GitHub publishes about the requests that ashep makes of it, for tests: `python -m tools.github_schema`.

It is read from npm's `@octokit/openapi` (MIT), and of it the operations below are kept in `tests/github-schema.json`,
without descriptions and examples. Another version is set here, and what it changes shows in the difference.
"""

import json
import tarfile
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio

from ashep.adapters.system import programs

VERSION = "23.0.2"
FILE = Path(__file__).parents[1] / "tests" / "github-schema.json"
REPOSITORY = "/repos/{owner}/{repo}"
OPERATIONS = (
    ("get", "/user"),
    ("get", REPOSITORY),
    ("get", f"{REPOSITORY}/collaborators/{{username}}/permission"),
    ("get", f"{REPOSITORY}/labels/{{name}}"),
    ("get", f"{REPOSITORY}/compare/{{basehead}}"),
    ("get", f"{REPOSITORY}/issues"),
    ("get", f"{REPOSITORY}/issues/{{issue_number}}"),
    ("patch", f"{REPOSITORY}/issues/{{issue_number}}"),
    ("get", f"{REPOSITORY}/issues/{{issue_number}}/timeline"),
    ("get", f"{REPOSITORY}/issues/{{issue_number}}/comments"),
    ("post", f"{REPOSITORY}/issues/{{issue_number}}/comments"),
    ("patch", f"{REPOSITORY}/issues/comments/{{comment_id}}"),
    ("get", f"{REPOSITORY}/issues/comments/{{comment_id}}/reactions"),
    ("get", f"{REPOSITORY}/pulls"),
    ("post", f"{REPOSITORY}/pulls"),
    ("get", f"{REPOSITORY}/pulls/{{pull_number}}"),
    ("get", f"{REPOSITORY}/pulls/{{pull_number}}/comments"),
    ("get", f"{REPOSITORY}/pulls/{{pull_number}}/reviews"),
    ("get", f"{REPOSITORY}/commits/{{ref}}/status"),
    ("get", f"{REPOSITORY}/commits/{{ref}}/check-runs"),
)
_WORDS = ("type", "nullable", "properties", "items", "enum", "anyOf", "oneOf", "allOf", "additionalProperties")


def fetch_schema() -> tuple[dict[str, Any], str]:
    """Fetch the whole of it with npm, and its licence. Raises `SystemExit` where npm cannot."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["npm", "pack", "--silent", f"@octokit/openapi@{VERSION}"]
        result = anyio.run(partial(programs.run, words, cwd=Path(folder), env=None, timeout=300.0))
        if result.returncode:
            raise SystemExit(f"npm does not give the package: {result.stderr.decode()}")
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            archive.extractall(folder, filter="data")
        package = Path(folder) / "package"
        schema = json.loads((package / "generated" / "api.github.com.json").read_text())
        return schema, (package / "LICENSE").read_text()


def build_extract(schema: dict[str, Any], licence: str) -> dict[str, Any]:
    """Build what is kept: parameters, request bodies and answers of the operations, and the schemas they refer to."""
    names, definitions = set[str](), dict[str, Any]()

    def prune(node: Any) -> Any:
        if isinstance(node, list):
            return [prune(item) for item in cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        node = cast("dict[str, Any]", node)
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            names.add(name)
            return {"$ref": f"#/definitions/{name}"}
        pruned = {word: prune(node[word]) for word in _WORDS if word in node and word != "properties"}
        if "properties" in node:
            pruned["properties"] = {name: prune(value) for name, value in node["properties"].items()}
        return pruned

    def resolve(node: dict[str, Any]) -> dict[str, Any]:
        kind, _, name = node.get("$ref", "").removeprefix("#/components/").partition("/")
        return schema["components"][kind][name] if name else node

    operations = dict[str, Any]()
    for method, path in OPERATIONS:
        operation = schema["paths"][path][method]
        answers = {
            status: prune(resolve(answer)["content"]["application/json"]["schema"])
            for status, answer in operation["responses"].items()
            if status in ("200", "201") and "content" in resolve(answer)
        }
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        query = [item["name"] for item in map(resolve, operation.get("parameters", [])) if item["in"] == "query"]
        operations[f"{method} {path}"] = {"query": sorted(query), "body": prune(body), "answers": answers}
    while missing := names - definitions.keys():
        definitions |= {name: prune(schema["components"]["schemas"][name]) for name in missing}
    source = (
        f"GitHub REST API description, by npm's @octokit/openapi {VERSION}; made by `python -m tools.github_schema`"
    )
    return {"source": source, "licence": licence, "operations": operations, "definitions": definitions}


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(build_extract(*fetch_schema()), sort_keys=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
