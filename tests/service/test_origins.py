"""Origins of proxies in config.yaml: as browsers send them, or a mistake with its place."""

from pathlib import Path

import pytest

from ashep.config import settings_in
from ashep.errors import ConfigError


def written(folder: Path, *origins: str) -> Path:
    (folder / "config.yaml").write_text(
        "\n".join(["version: 1", "ui:", "  origins:", *(f"  - {one!r}" for one in origins)])
    )
    return folder


def test_origins_are_taken_as_they_stand(tmp_path: Path) -> None:
    good = ("https://box.example.net", "https://box:8443", "https://10.0.0.1", "https://[fd00::1]:65535")
    assert settings_in(written(tmp_path, *good)).ui.origins == good


@pytest.mark.parametrize("bad", [
    "http://box.example.net", "https://box.example.net/", "https://box.example.net/page", "https://box.example.net:443",
    "https://BOX.example.net", "https://box.example.net:0", "https://box.example.net:65536", "https://*.example.net",
    "https://pat@box.example.net", "https://box.example.net?", "https://", "null", "*", "box.example.net",
    "https://b c", "https://bäx.example.net", "https://box.example.net\\n", "https://-box", f"https://{'x' * 300}",
])  # fmt: skip
def test_what_no_browser_sends_is_a_mistake_with_its_place(tmp_path: Path, bad: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_in(written(tmp_path, "https://box.example.net", bad))
    assert str(caught.value.file).endswith("config.yaml")
    assert (caught.value.line, caught.value.key) == (5, "ui.origins[1]")
    assert "expected an origin as browsers send it, such as https://box.example.net" in str(caught.value)
