"""The database `state/ashep.db` and `runs.jsonl`: pictures of the journal for those who read. Delete them: redrawn.

Never: anything that stands nowhere else.

Readers open the database with `ashep.store.sqlite_reader`, which imports nothing heavy, and read these tables (times
are ISO 8601 in UTC, JSON is text):

``meta(key, value)`` ``version`` of this form and of ashep; ``instance`` of the journal; ``file``, ``offset``, ``seq``
    and ``crc``: the journal's position up to which everything else is drawn; ``begins``: the number from which it is
    (0: from the first one, for nothing was pruned). ``facts(seq, at, kind, type, issue, run, body)`` Every entry that
    the journal holds, in order. ``kind`` is fact, decision or command; ``issue`` and ``run`` are null where the entry
    is about none; ``body`` is the record's own fields, without those that have their default, and without the journal's
    secret. ``runs(run, issue, phase, visit, attempt, agent, runner, provider, model, capability, access, state,
    planned_at, started_at, ended_at, session, result, verdict, summary, error, tokens, cost, restarts, trace, ended,
    body)`` Every run that was planned, by the last that is known of it (`ashep.core.runs.run_record`). ``ended`` is the
    sequence number of its end; ``body`` the whole `RunRecord`, for a finished run the very line of runs.jsonl.
    ``issues(issue, title, state, code, reason, since, phase, policy, run, due, body)`` Every known issue and its
    account (`ashep.core.analysis.issue_status`): ``state`` is running, person, time, parked, not_eligible or closed.
    ``body`` says what else is shown: the tracker's view, and the flow's counters and question.

Rows are a function of what the journal holds alone, and of what stands there for the part that was pruned. The daemon
writes (`projector`), at most every 0.5 seconds, so a reader may be that much behind; where none runs, `is_behind`
of `sqlite_reader` says whether records are missing.

``playback.db`` next to it holds Worlds at places of the journal, from which a moment of the past is folded. A server
makes it, for itself and the commands alone.

Modules: `schema` and `writer` (sqlmodel and SQLAlchemy), `issue_row` (an issue's), `row_types` (their JSON),
`projector`, `sqlite_reader`; `read_model`, the database caught up with, also where no daemon runs, by the journal as
`journal_reader` has it; `checkpoints` and `playback`, which go back to a moment.
"""
