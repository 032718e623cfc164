"""Where the project is, and the time."""

from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path

from ashep.cli.output import note
from ashep.core.state.branches import branch_in, file_of
from ashep.errors import UsageError
from ashep.store.read_model import ReadModel, open_read_model

FOLDER = ".agent-shepherd"


def find_project(given: Path | None) -> Path:
    """Give the project's folder: the given one, else the nearest upwards with `.agent-shepherd`, else this."""
    here = Path.cwd()
    if given is not None:
        project = (here / given).resolve()
        if not project.is_dir():
            raise UsageError(f"{given}: there is no such folder")
        return project
    above = (here, *here.parents)
    of_tree = next(filter(None, map(_project_of_tree, above)), None)
    return of_tree or next((folder for folder in above if (folder / FOLDER).is_dir()), here)


def _project_of_tree(folder: Path) -> Path | None:
    """Give the project whose issue is worked on in a work tree; None: this is no such tree's top."""
    with suppress(OSError, UnicodeDecodeError):
        link = folder / ".git"
        notes = list[Path]()
        if link.is_file():
            notes = [Path(link.read_text().removeprefix("gitdir:").strip()) / "ashep"]
        elif link.is_dir():  # a place: our notes are next to all of them
            below = ((above, branch_in(folder.relative_to(above).as_posix())) for above in folder.parents)
            notes = [above / ".notes" / file_of(branch) for above, branch in below]
        for one in notes:
            with suppress(FileNotFoundError, NotADirectoryError):
                project = Path((one / "project").read_text().rstrip("\n"))
                return project if (project / FOLDER).is_dir() else None
    return None


def configured(project: Path) -> Path:
    """Give the folder `.agent-shepherd`; `UsageError` where there is none."""
    folder = project / FOLDER
    if not folder.is_dir():
        raise UsageError(f"{project} has no folder {FOLDER}: run `ashep setup` in the project first")
    return folder


def picture(state: Path) -> AbstractContextManager[ReadModel]:
    """Open the picture of the journal, caught up with; a person is told where it has to be drawn."""
    return open_read_model(state, note)


def current_time() -> datetime:
    """Give the time."""
    return datetime.now(UTC)  # noqa: TID251 - a command for people, outside of everything that is replayed


def read_state(project: Path | None) -> Path:
    """Give the folder of the state of a project that is set up."""
    return configured(find_project(project)) / "state"


def config_of(state: Path) -> str:
    """Give the text of config.yaml; empty where there is none."""
    try:
        return (state.parent / "config.yaml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
