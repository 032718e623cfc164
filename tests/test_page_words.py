"""All that the page says is in one file, `web/src/strings.ts`, to be read in one go."""

import shutil
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).resolve().parent.parent / "web"
PLANTED = (
    "export const A = () => <p>All is well</p>",
    'export const A = () => <button aria-label="Close">✕</button>',
    "export const A = (many: number) => <p>{`${many} runs failed`}</p>",
    "export const A = (works: boolean) => <p>{works ? 'Done' : ''}</p>",
)
CODE = "export const A = ({ b }: { b: string }) => b === 'Enter' ? <i className='mark s-a' /> : <kbd>Ctrl K</kbd>"


def english(folder: Path) -> list[str]:
    """The lines in which a folder of scripts says something itself."""
    node = shutil.which("node")
    if node is None or not Path(WEB, "node_modules", "typescript").is_dir():
        pytest.skip("the page's compiler is not here: run `make page`")
    argv = [node, "words.mjs", str(folder)]
    return subprocess.run(argv, cwd=WEB, capture_output=True, text=True, check=False).stderr.splitlines()


def test_the_page_says_nothing_outside_of_its_strings() -> None:
    assert english(WEB / "src") == []


def test_words_that_stand_elsewhere_are_found(tmp_path: Path) -> None:
    for number, text in enumerate((*PLANTED, CODE)):
        (tmp_path / f"{number}.tsx").write_text(text)
    assert [Path(line.split(":")[0]).name for line in english(tmp_path)] == ["0.tsx", "1.tsx", "2.tsx", "3.tsx"]
