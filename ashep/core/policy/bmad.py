"""What stories of the BMAD method are worked on with."""

from typing import Annotated

from pydantic import Field

from ashep.core.policy.language import Document


class Bmad(Document):
    """Stories of the BMAD method (docs/guides/stories.md)."""

    enabled: bool = False
    """Whether `ashep work` keeps an issue of each story, as `ashep story sync` does: when it begins, and when a story
    has changed."""
    contexts: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=1000)], ...], Field(max_length=100)] = ()
    """Files that the arbiter reads beside the story, as `docs/architecture.md`; a path begins at the project's
    folder."""
