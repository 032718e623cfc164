"""What each command asks for, in words. It imports nothing: commands that only look need it, too."""

WORDS = {
    "ClaimIssue": "claim it",
    "WriteIssue": "write to it",
    "TakeOffLabels": "take labels off",
    "PostComment": "post a comment",
    "CreateIssue": "create an issue",
    "ReadIssue": "read it again",
    "ReadAnswer": "read the answer",
    "ReadAuthors": "read who changed it",
    "OpenSession": "open a session",
    "PreparePrompt": "write a prompt",
    "SendPrompt": "deliver a prompt",
    "AnswerRequest": "answer its session",
    "StopTurn": "stop the session",
    "ReadTree": "read the work tree",
    "PrepareTree": "prepare its work tree",
    "SealTree": "commit what the run left",
    "RemoveTree": "take its work tree and branch away",
    "VerifyWork": "carry its checks out",
    "IntegrateWork": "bring its work onto the base",
    "MoveBase": "move the base",
    "OpenPullRequest": "push its branch and open a pull request",
    "StopOrphan": "stop another journal's session",
    "ReclaimIssue": "take a dead daemon's claim back",
    "SendNotice": "tell people",
    "MirrorIssue": "mirror it into the tracker",
    "SayAtSource": "comment at its source",
    "CloseAtSource": "close it at its source",
}
"""By the command's class: what follows on `cannot`, or on `under way`."""

REFUSES = {"unauthorized": "takes none of our credentials", "misconfigured": "refuses its configuration, mend that"}
"""By its state: what is wrong with a runner that answers."""
