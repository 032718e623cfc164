"""Mirror of stories in a tracker: what is to be written there so that each has one issue. Nothing is written here.

In the metadata of an issue stands what was last written of it (`TrackedStory.note`), so that what a person changed
there meanwhile is told from what the file says again: a person's change stays. A write repeated, or cut off, changes
nothing.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import PurePath
from typing import Literal

from ashep.bmad.status_words import state_of
from ashep.bmad.story import Story
from ashep.core.text import clean

NOTE = "story"
"""The key in an issue's metadata."""

POLICY, AFTER_PLAN, BEFORE_END = "bmad-story", "bmad-story-spec", "bmad-story-done"
"""Policies (`ashep.config.presets`): of most stories; where a person looks first at what is planned; where one looks at
what is done, too. The last two begin with the first person.
"""

_TITLE, _ACCEPTANCE, _ID = 200, 20_000, 10
_AGAIN = state_of("review", reviewed=True, unresolved=0)[1]


@dataclass(frozen=True, slots=True)
class Prefixes:
    """How ids and labels begin."""

    ids: str
    story: str = "story:"
    policy: str = "policy:"
    phase: str = "phase:"
    policies: Collection[str] | None = None
    """Those that there are; None: all that are asked for."""


@dataclass(frozen=True, slots=True)
class StoryIssue:
    """A story, as far as it concerns its issue."""

    path: str
    story: Story
    epic: str | None = None
    spec_checkpoint: bool = False
    done_checkpoint: bool = False
    git: Literal["new", "changed"] | None = None
    """What git has of the file: nothing, or something else; None: all."""
    can_be_named: bool = True
    """Its path can stand in a label, by which its issue names it."""
    finished: bool = False
    """It was done before anybody asked: it gets no issue by itself."""

    @property
    def name(self) -> str:
        """How people call it."""
        return self.story.id or self.story.key


@dataclass(frozen=True, slots=True)
class IssueWords:
    """What is to be read on an issue."""

    title: str
    description: str
    acceptance: str

    @property
    def digest(self) -> str:
        """Tells them from others, but for space around them."""
        said = "\0".join(one.strip() for one in (self.title, self.description, self.acceptance))
        return sha256(said.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class TrackedStory:
    """An issue of a story or an epic, as the tracker shows it."""

    id: str
    words: IssueWords
    status: str
    note: Mapping[str, str]
    assignee: str | None = None
    labels: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    begun: bool = False
    """ashep has worked on it."""


@dataclass(frozen=True, slots=True)
class IssueToCreate:
    """An issue to be created, with all of this at once."""

    id: str
    type: str
    words: IssueWords
    note: Mapping[str, str]
    labels: tuple[str, ...] = ()
    parent: str | None = None
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IssueChange:
    """What is to be changed of an issue: edges, then the rest at once. What is None or empty stays."""

    id: str
    path: str
    words: IssueWords | None = None
    note: Mapping[str, str] = field(default_factory=dict[str, str])
    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    wait_for: tuple[str, ...] = ()
    wait_no_more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoryWarning:
    """What a person should know about a story."""

    path: str
    says: str
    refuses: bool = False
    """It is not worked on for that."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written, epics first, and each story behind those that it waits for."""

    made: tuple[IssueToCreate, ...] = ()
    changed: tuple[IssueChange, ...] = ()
    told: tuple[StoryWarning, ...] = ()
    issues: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of each story's path its issue, those that are to be created included."""
    closed: frozenset[str] = frozenset()
    """Issues of these that are closed."""
    finished: tuple[str, ...] = ()
    """Paths of stories that are done and have no issue."""


def plan(
    stories: Sequence[StoryIssue],
    issues: Sequence[TrackedStory],
    names: Prefixes,
    *,
    order: Sequence[Sequence[str]] = (),
    epics: Mapping[str, str] | None = None,
    only: Collection[str] | None = None,
    asked: Collection[str] = (),
    there: Collection[str] = (),
) -> Plan:
    """Plan the writes.

    `order`: paths in the order of work, where that is said; `epics`: their titles; `only`: paths of those that matter,
    None: all; `asked`: those of them that get an issue even if they are finished; `there`: other files that there are.
    """
    rank = {path: place for place, path in enumerate(path for one in order for path in one)}
    planning = _Planning(
        stories=sorted(stories, key=lambda one: rank.get(one.path, -1)),
        kept=[one for one in issues if one.note.get("path")],
        epics={one.note["epic"]: one.id for one in reversed(issues) if one.note.get("epic")},
        names=names,
        titles=epics or {},
        only=frozenset(one.path for one in stories) if only is None else frozenset(only),
        asked=asked,
        there=there,
        before={path: tuple(reversed(one[:place])) for one in order for place, path in enumerate(one)},
        taken={one.id for one in issues},
    )
    made = planning.plan()
    return made if only is None else replace(made, told=tuple(one for one in made.told if one.path in only))


@dataclass
class _Planning:
    stories: list[StoryIssue]
    kept: list[TrackedStory]
    epics: dict[str, str]
    names: Prefixes
    titles: Mapping[str, str]
    only: frozenset[str]
    asked: Collection[str]
    there: Collection[str]
    before: Mapping[str, Sequence[str]]
    taken: set[str]
    told: list[StoryWarning] = field(default_factory=list[StoryWarning])
    ids: dict[str, str] = field(default_factory=dict[str, str])
    twins: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def plan(self) -> Plan:
        pairs, self.twins = self._pairs(), Counter(map(_identify_story, self.stories))
        new = [
            story
            for story in self.stories
            if story.path not in pairs and story.path in self.only and self._gets_one(story)
        ]
        self.ids = {path: pair.id for path, pair in pairs.items()} | {one.path: self._id(one.path) for one in new}
        parents = [self._epic(one.epic) for one in new if one.epic and one.epic not in self.epics]
        known = [
            (story, pairs[story.path]) for story in self.stories if story.path in pairs and story.path in self.only
        ]
        changed = [change for one, issue in known if (change := self._changed(one, issue)) is not None]
        closed = frozenset(issue.id for issue in pairs.values() if issue.status == "closed")
        finished = tuple(story.path for story in self.stories if story.path not in self.ids and story.finished)
        made = (*parents, *(self._draft_issue(one) for one in new))
        return Plan(made, tuple(changed), tuple(self.told), self.ids, closed, finished)

    def _pairs(self) -> dict[str, TrackedStory]:
        """Find the issue of each story: by its path, and where that is another now by its key or id."""
        pairs, left = dict[str, TrackedStory](), dict[str, TrackedStory]()
        paths = {story.path for story in self.stories}
        for issue in self.kept:
            path = issue.note["path"]
            if path in paths and path not in pairs:
                pairs[path] = issue
            elif path in paths:
                self.told.append(
                    StoryWarning(path, f"{issue.id} is its issue, too, beside {pairs[path].id}: close one")
                )
            elif path not in self.there:
                left[issue.id] = issue
        by: tuple[tuple[Callable[[StoryIssue], object], Callable[[StoryIssue, TrackedStory], object]], ...] = (
            (lambda one: one.story.key, lambda _, kept: kept.note.get("key")),
            (_identify_story, lambda one, kept: (kept.note.get("id"), _folder(one, kept.note["path"]))),
        )
        for mine, theirs in by:
            for one in [story for story in self.stories if story.path not in pairs]:
                found = [kept for kept in left.values() if theirs(one, kept) == mine(one)]
                alone = sum(mine(story) == mine(one) for story in self.stories) == 1
                if len(found) == 1 and alone:
                    pairs[one.path] = left.pop(found[0].id)
                    self.told.append(StoryWarning(one.path, f"it was {found[0].note['path']}: {found[0].id} follows"))
        for issue in left.values():
            if issue.status != "closed":
                says = f"there is no such story any more; its issue {issue.id} stays as it is"
                self.told.append(StoryWarning(issue.note["path"], says, refuses=True))
        return pairs

    def _gets_one(self, one: StoryIssue) -> bool:
        if one.finished and one.path not in self.asked:
            return False
        if self.twins[_identify_story(one)] > 1:
            self.told.append(StoryWarning(one.path, f"other files are {one.name}, too: leave one", refuses=True))
            return False
        return self._is_worked_on(one)

    def _is_worked_on(self, one: StoryIssue, issue: TrackedStory | None = None) -> bool:
        """Tell why it is not, or what of it agents do not see."""
        if why := self._not_worked_on(one, begun=issue is not None and issue.begun):
            self.told.append(StoryWarning(one.path, why, refuses=True))
        elif one.git == "changed":
            says = "it has changes that are not committed; agents see what was committed"
            if issue is not None and issue.status == "in_progress":
                says = f"it is changed here while {issue.id} is being worked on: what stands in its place counts"
            self.told.append(StoryWarning(one.path, says))
        return not why

    def _not_worked_on(self, one: StoryIssue, *, begun: bool) -> str:
        if not one.can_be_named:
            return "its path cannot stand in a label: letters, digits, blanks and . @ + ( ) - only; rename it"
        if one.git == "new":
            return f"git has not got it, and no agent would see it: `git add -f {one.path}`, and commit it"
        if begun:
            return ""
        if self.names.policies is not None and (policy := _policy(one)) not in self.names.policies:
            return f"there is no policy {policy} in policies.yaml: take it from `ashep init --preset {POLICY}`"
        return one.story.why if _first(one) is None else ""

    def _id(self, path: str) -> str:
        """Make an id that is the same whenever it is made, and no other issue's."""
        number, made = 0, ""
        while not made or made in self.taken:
            digest = sha256(f"ashep story\0{path}\0{number}".encode()).hexdigest()[:_ID]
            number, made = number + 1, f"{self.names.ids}-{digest}"
        self.taken.add(made)
        return made

    def _epic(self, epic: str) -> IssueToCreate:
        self.epics[epic] = self._id(f"epic {epic}")
        words = IssueWords(
            _line(f"Epic {epic}: {self.titles.get(epic, '')}".rstrip(": ")), "Its stories are below it.", ""
        )
        return IssueToCreate(self.epics[epic], "epic", words, {"epic": epic})

    def _draft_issue(self, one: StoryIssue) -> IssueToCreate:
        words, note = _words(one), self._note(one)
        labels = [self.names.story + one.path, self.names.policy + note["policy"]]
        labels += [self.names.phase + note["phase"]] if note["phase"] else []
        after = (note["after"],) if note["after"] else ()
        return IssueToCreate(
            self.ids[one.path], "task", words, note, tuple(labels), self.epics.get(one.epic or ""), after
        )

    def _note(self, one: StoryIssue) -> dict[str, str]:
        after = next((self.ids[path] for path in self.before.get(one.path, ()) if path in self.ids), "")
        named = {"key": one.story.key, "id": one.story.id or "", "path": one.path}
        return {**named, "text": _words(one).digest, "policy": _policy(one), "phase": _first(one) or "", "after": after}

    def _changed(self, one: StoryIssue, issue: TrackedStory) -> IssueChange | None:
        """Say what the issue lacks; where a person changed what is written again here, that is told, and stays."""
        note, wanted = self._note(one), IssueChange(issue.id, one.path)
        if one.path != issue.note["path"] and (old := self.names.story + issue.note["path"]) in issue.labels:
            wanted = _labelled(wanted, [old], [self.names.story + one.path])
        elif self.names.story + one.path not in issue.labels and issue.status != "closed":
            says = f"{issue.id} lacks the label {self.names.story}{one.path}: it is not worked on as a story"
            self.told.append(StoryWarning(one.path, says, refuses=True))
        if issue.status == "closed":
            if one.story.state != "complete":
                said = one.story.status.said[:60] if one.story.status else "no status"
                self.told.append(
                    StoryWarning(one.path, f"it says {said}, and {issue.id} is closed: `bd reopen {issue.id}`")
                )
            note |= {key: issue.note.get(key, "") for key in ("text", "policy", "phase", "after")}
            return self._noted(wanted, note, issue)
        self._is_worked_on(one, issue)
        wanted = self._rewritten(one, issue, wanted, note)
        wanted = self._led(one, issue, wanted, note)
        if (old := issue.note.get("after", "")) != note["after"]:
            behind = (note["after"],) if note["after"] and note["after"] not in issue.waits_for else ()
            no_more = (old,) if old in issue.waits_for else ()
            wanted = replace(wanted, wait_for=behind, wait_no_more=no_more)
        return self._noted(wanted, note, issue)

    def _rewritten(
        self, one: StoryIssue, issue: TrackedStory, wanted: IssueChange, note: dict[str, str]
    ) -> IssueChange:
        words, noted = _words(one), issue.note.get("text", "")
        if words.digest in (noted, issue.words.digest):
            return wanted
        if issue.words.digest == noted:
            return replace(wanted, words=words)
        note["text"] = noted
        self.told.append(
            StoryWarning(one.path, f"its title or criteria changed, and so did {issue.id}, by hand: that stays")
        )
        return wanted

    def _led(self, one: StoryIssue, issue: TrackedStory, wanted: IssueChange, note: dict[str, str]) -> IssueChange:
        """Lead an issue that nobody has begun to where its file is, unless a person led it elsewhere."""
        free = issue.status == "open" and issue.assignee is None and not issue.begun
        free = free and one.git is None and _first(one) is not None
        for key, prefix in (("policy", self.names.policy), ("phase", self.names.phase)):
            old, new = ([prefix + named] if named else [] for named in (issue.note.get(key, ""), note[key]))
            now = [label for label in issue.labels if label.startswith(prefix)]
            if free and old != new and now == old:
                wanted = _labelled(wanted, old, new)
            elif old != new and (not free or now != new):
                note[key] = issue.note.get(key, "")
                if free:
                    says = f"{issue.id} would get {'/'.join(new) or 'no ' + prefix}, and a person changed that"
                    self.told.append(StoryWarning(one.path, says))
        return wanted

    def _noted(self, wanted: IssueChange, note: Mapping[str, str], issue: TrackedStory) -> IssueChange | None:
        if dict(note) != {key: issue.note.get(key, "") for key in note}:
            wanted = replace(wanted, note={**issue.note, **note})
        return None if wanted == IssueChange(issue.id, wanted.path) else wanted


def _labelled(wanted: IssueChange, old: Sequence[str], new: Sequence[str]) -> IssueChange:
    add, remove = (*wanted.add_labels, *new), (*wanted.remove_labels, *old)
    return replace(wanted, add_labels=add, remove_labels=remove)


def _first(one: StoryIssue) -> str | None:
    """Give the phase that a story begins in; empty: the policy's first one; None: it is not worked on."""
    match one.story.state:
        case "idle" if one.spec_checkpoint:
            return ""
        case "idle" | "developing" | "fixing":
            return "" if _policy(one) == POLICY else "developer"
        case "ready-for-review":
            return "reviewer"
        case "complete":
            return "arbiter"
        case _:
            return "reviewer" if one.story.why == _AGAIN else None


def _policy(one: StoryIssue) -> str:
    return BEFORE_END if one.done_checkpoint else AFTER_PLAN if one.spec_checkpoint else POLICY


def _words(one: StoryIssue) -> IssueWords:
    title = f"{one.name}: {one.story.title or one.story.key}"
    said = f"The story in {one.path}: what is to be done stands there, and what was done.\n"
    criteria = "\n".join(f"- {text}" for text, _ in one.story.criteria)
    return IssueWords(_line(title), clean(said), clean(criteria)[:_ACCEPTANCE])


def _line(text: str) -> str:
    return " ".join(clean(text).split())[:_TITLE]


def _identify_story(one: StoryIssue) -> tuple[str, str]:
    """Give what no two stories have; ids of specifications are those of a folder."""
    return one.name, _folder(one, one.path)


def _folder(one: StoryIssue, path: str) -> str:
    return str(PurePath(path).parent) if one.story.kind == "specification" else ""


def of_epic(id_: str | None) -> str | None:
    """Give the epic in a story's id: of `1-3` it is `1`, of `ab-1-3` it is `ab-1`."""
    if id_ is None:
        return None
    parts = id_.split("-")
    epic = parts[:2] if parts[0].isalpha() else parts[:1]
    return "-".join(epic) if len(parts) > len(epic) else None
