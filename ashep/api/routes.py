"""The table of endpoints: verification, and below /api/v1 what the page looks at, and programs."""

from contextlib import suppress

from pydantic import BaseModel

from ashep import __version__
from ashep.api.handlers import issue_work, point_in_time, projects, run_artifacts
from ashep.api.openapi import OF_BODIES, ApiRoute, ApiServices, RequestContext
from ashep.api.schemas import actions, page, verification
from ashep.api.sessions import Session
from ashep.errors import AshepError
from ashep.views import json_types

V1 = "/api/v1"


async def _health(_: ApiServices, __: RequestContext) -> BaseModel:
    return verification.HealthAnswer(version=__version__)


async def _enter(of: ApiServices, asked: RequestContext) -> BaseModel:
    token, session = of.sessions.enter(asked.given.code, asked.agent)
    if session.device is None:
        with suppress(AshepError):  # then a restart of the server sends them out; `keep` says why
            await of.sessions.save()
    else:
        await of.sessions.save()
    return page.Entered(token=token, person=session.person or "", device=session.device)


async def _leave(of: ApiServices, asked: RequestContext) -> BaseModel:
    of.sessions.leave(asked.authorization)
    await of.sessions.save()
    return page.Left()


async def prove(services: ApiServices, request: RequestContext) -> BaseModel:
    """Show a page that this server knows its session."""
    return page.ServerProof(proof=services.sessions.prove(request.given.name, request.given.nonce))


def _get_person(session: Session) -> str:
    assert session.person is not None  # no other session has a scope that writes
    return session.person


def _run(asked: RequestContext) -> str:
    return f"{asked.place['issue']}/{asked.place['run']}"


VERIFICATION = (
    ApiRoute(
        "POST", "/verify", "verify", "Carry out the checks of an issue on the tip of a branch; wait for the result.",
        verification.VerificationAnswer,
        lambda of, asked: of.tickets.verify(asked.given.ticket_id, asked.given.branch_name, asked.given.repo_url),
        "verify", verification.Verify, problems=(404, 409, 502, 504, *OF_BODIES),
    ),
    ApiRoute(
        "GET", "/status/{ticket_id}", "status", "How an issue stands after its last verification.",
        verification.StatusAnswer,
        lambda of, asked: of.tickets.status(asked.place["ticket_id"]), "tickets",
        problems=(404,),
    ),
    ApiRoute("GET", "/health", "health", "Whether the service answers.", verification.HealthAnswer, _health, None),
    ApiRoute(
        "GET", "/tickets", "list", "Issues, and what their last verifications came to.",
        verification.TicketsAnswer,
        lambda of, asked: of.tickets.listed(asked.given.status), "tickets",
        query=verification.Listing, problems=(422,),
    ),
    ApiRoute(
        "POST", "/tickets", "create", "Create an issue, with acceptance criteria; once for each Idempotency-Key.",
        verification.TicketAnswer,
        lambda of, asked: of.tickets.create(asked.given, asked.key), "tickets",
        verification.NewTicket, status=201, problems=OF_BODIES,
    ),
    ApiRoute(
        "GET", "/tickets/{id}", "ticket", "An issue, its acceptance criteria, and the checks in them.",
        verification.TicketAnswer,
        lambda of, asked: of.tickets.ticket(asked.place["id"]), "tickets",
        problems=(404,),
    ),
    ApiRoute(
        "PUT", "/tickets/{id}", "edit", "Replace words, priority or acceptance criteria of an issue.",
        verification.TicketAnswer,
        lambda of, asked: of.tickets.edit(asked.place["id"], asked.given), "tickets",
        verification.Edit, problems=(404, *OF_BODIES),
    ),
    ApiRoute(
        "GET", "/tickets/{id}/verification", "history", "The verifications of an issue, the last ten.",
        verification.HistoryAnswer,
        lambda of, asked: of.tickets.history(asked.place["id"]), "tickets",
        problems=(404,),
    ),
)  # fmt: skip

PAGE = (
    ApiRoute(
        "GET", f"{V1}/now", "now", "What waits for a person, what runs, and what is true of everything.",
        page.Now, lambda of, _: of.pictures.home(), "read",
    ),
    ApiRoute(
        "GET", f"{V1}/answers", "answers", "Answers of people that stand in the tracker, and are not followed yet.",
        actions.Answers, lambda of, _: of.acts.list_answers(), "read", problems=(422,),
    ),
    ApiRoute(
        "GET", f"{V1}/issues", "issues", "Issues, those whose standing changed last first, page by page.",
        json_types.IssuesJson, lambda of, asked: of.pictures.issues(asked.given), "read",
        query=page.WhichIssues, problems=(422,), names="/items/0/issue",
    ),
    ApiRoute(
        "GET", f"{V1}/issues/{{issue}}", "issue", "An issue: why it is where it is, and its evidence.",
        page.IssueStory, lambda of, asked: of.pictures.issue(asked.place["issue"]), "read", problems=(404,),
    ),
    ApiRoute(
        "GET", f"{V1}/issues/{{issue}}/work", "issue_work", "What was asked of an issue's agents, and what they say.",
        page.IssueWork,
        lambda services, request: issue_work.read_work(services.acts, request.place["issue"]), "read", problems=(404,),
    ),
    ApiRoute(
        "GET", f"{V1}/issues/{{issue}}/diff", "issue_diff", "The sum of an issue's work: its files, or lines of one.",
        run_artifacts.Changes,
        lambda services, request: issue_work.read_diff(services.pictures, request.place["issue"], request.given),
        "read", query=run_artifacts.WhichLines, problems=(404, 422),
    ),
    ApiRoute(
        "GET", f"{V1}/issues/{{issue}}/runs", "course", "An issue's runs and questions, and what led from each on.",
        json_types.CourseJson, lambda of, asked: of.pictures.course(asked.place["issue"]), "read", problems=(404,),
    ),
    ApiRoute(
        "GET", f"{V1}/runs", "runs", "Runs, the newest first, page by page.",
        json_types.RunsJson, lambda of, asked: of.pictures.runs(asked.given), "read",
        query=page.WhichRuns, problems=(422,),
        names="/items/0/issue",
    ),
    ApiRoute(
        "GET", f"{V1}/runs/{{issue}}/{{run}}", "run", "A run: why this agent, prompts, turns, evidence.",
        page.Run, lambda of, asked: of.pictures.run(_run(asked)), "read", problems=(404,),
    ),
    ApiRoute(
        "GET", f"{V1}/runs/{{issue}}/{{run}}/prompts/{{n}}", "prompt", "The text of a prompt.",
        page.Words, lambda of, asked: of.pictures.words(_run(asked), "prompts", int(asked.place["n"])), "read",
        problems=(404,),
    ),
    ApiRoute(
        "GET", f"{V1}/runs/{{issue}}/{{run}}/answers/{{n}}", "answer", "The words in which an agent answered.",
        page.Words, lambda of, asked: of.pictures.words(_run(asked), "turns", int(asked.place["n"])), "read",
        problems=(404,),
    ),
    ApiRoute(
        "GET", f"{V1}/runs/{{issue}}/{{run}}/session", "session", "How the session of a run is opened.",
        page.Opening, lambda of, asked: run_artifacts.opening(of.pictures, _run(asked)), "read", problems=(404, 422),
    ),
    ApiRoute(
        "GET", f"{V1}/runs/{{issue}}/{{run}}/diff", "diff", "What a run changed: its files, or the lines of one.",
        run_artifacts.Changes, lambda of, asked: run_artifacts.diff(of.pictures, _run(asked), asked.given), "read",
        query=run_artifacts.WhichLines, problems=(404, 422),
    ),
    ApiRoute(
        "GET", f"{V1}/runs/{{issue}}/{{run}}/transcript", "transcript", "The end of what was said in a run's session.",
        run_artifacts.Transcript, lambda of, asked: run_artifacts.transcript(of.pictures, _run(asked),
         asked.given.after), "read",
        query=run_artifacts.After, problems=(404, 422),
    ),
    ApiRoute(
        "GET", f"{V1}/timeline", "timeline", "Every run, as columns.",
        json_types.TimelineJson, lambda of, _: of.pictures.timeline(), "read",
    ),
    ApiRoute(
        "GET", f"{V1}/report", "report", "What became of the night.",
        page.Report, lambda of, asked: of.pictures.report(asked.given.since), "read",
        query=page.From, problems=(422,),
    ),
    ApiRoute(
        "GET", f"{V1}/usage", "usage", "What runs used.",
        page.Usage, lambda of, asked: of.pictures.usage(asked.given.by, asked.given.since), "read",
        query=page.WhichUsage, problems=(422,),
    ),
    ApiRoute(
        "GET", f"{V1}/usage/days", "days", "What runs used, by day and provider.",
        json_types.DaysJson, lambda of, asked: of.pictures.days(asked.given.since), "read",
        query=page.From, problems=(422,),
    ),
    ApiRoute(
        "GET", f"{V1}/budgets", "budgets", "Each limit of budgets, what is used of it, and which issues it keeps.",
        json_types.BudgetsJson, lambda of, _: of.pictures.budgets(), "read",
    ),
    ApiRoute(
        "GET", f"{V1}/policies/{{policy}}", "policy", "A policy as a graph, with how many issues are where.",
        json_types.PolicyJson, lambda of, asked: of.pictures.policy(asked.place["policy"]), "read", problems=(404, 422),
    ),
    ApiRoute(
        "GET", f"{V1}/then", "then", "How everything stood at a moment, by the journal until then.",
        json_types.ThenJson, lambda of, asked: point_in_time.read_moment(of.pictures, asked.given), "read",
        query=point_in_time.WhichMoment, problems=(422,),
    ),
    ApiRoute(
        "GET", f"{V1}/records", "records", "Records of the journal, in order, page by page.",
        json_types.RecordsJson, lambda of, asked: of.pictures.records(asked.given), "read",
        query=page.WhichRecords, problems=(422,),
    ),
    ApiRoute(
        "GET", f"{V1}/records/{{seq}}", "record", "A record of the journal.",
        page.OneRecord, lambda of, asked: of.pictures.record(int(asked.place["seq"])), "read", problems=(404,),
    ),
    ApiRoute(
        "GET", f"{V1}/events", "events", "What changes, as server-sent events: `changed`; `signs` of a run.",
        page.Changed,
        lambda of, asked: of.live.watch(
            asked.given.run, lambda: of.sessions.find_session(asked.authorization, asks=False) is not None
        ), "read", query=run_artifacts.RunReference, problems=(422,),
    ),
    ApiRoute(
        "GET", f"{V1}/projects", "projects", "Projects that run on this machine, and how much waits in each.",
        page.ProjectList,
        lambda services, request: projects.list_projects(services.pictures, request.session.device), "look around",
    ),
    ApiRoute(
        "POST", f"{V1}/issues/{{issue}}", "act", "Approve, reject, answer, retry, take or release an issue.",
        actions.Done, lambda of, asked: of.acts.act(_get_person(asked.session), asked.place["issue"], asked.given),
        "answer", actions.Act, problems=(404, 409, 502, *OF_BODIES),
    ),
    ApiRoute(
        "POST", f"{V1}/pause", "pause", "Let no run start.",
        actions.Done, lambda of, asked: of.acts.pause(_get_person(asked.session), asked.given), "control",
        actions.Pause, problems=(502, *OF_BODIES),
    ),
    ApiRoute(
        "POST", f"{V1}/resume", "resume", "Let runs start again.",
        actions.Done, lambda of, asked: of.acts.resume(_get_person(asked.session), asked.given), "control",
        actions.Resume, problems=(502, *OF_BODIES),
    ),
    ApiRoute(
        "POST", f"{V1}/cancel", "cancel", "Stop what is done for an issue, which parks.",
        actions.Done, lambda of, asked: of.acts.cancel(_get_person(asked.session), asked.given), "control",
        actions.Cancel, problems=(502, *OF_BODIES),
    ),
    ApiRoute(
        "POST", f"{V1}/enter", "enter", "Exchange the code of a link for a token, once.",
        page.Entered, _enter, None, page.Code, problems=OF_BODIES,
    ),
    ApiRoute(
        "POST", f"{V1}/prove", "prove", "Show a page whose server was away that this one knows its session.",
        page.ServerProof, prove, None, page.Doubt, problems=OF_BODIES,
    ),
    ApiRoute("POST", f"{V1}/leave", "leave", "End the session.", page.Left, _leave, "answer"),
)  # fmt: skip

OPERATIONS = (*VERIFICATION, *PAGE)

ALSO = {
    "/issues": f"{V1}/issues",
    "/issues/{issue}/runs": f"{V1}/issues/{{issue}}/runs",
    "/runs/{issue}/{run}": f"{V1}/runs/{{issue}}/{{run}}",
}
"""Other paths of endpoints, for whoever accepts JSON there; who accepts a page gets the page."""
