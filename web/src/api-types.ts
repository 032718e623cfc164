export interface paths {
    "/api/v1/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["cancel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/enter": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["enter"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/issues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["issues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/issues/{issue}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["issue"];
        put?: never;
        post: operations["act"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/issues/{issue}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["course"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/leave": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["leave"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/now": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["now"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["pause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies/{policy}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["policy"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/records": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["records"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/records/{seq}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["record"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["report"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["runs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{issue}/{run}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["run"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{issue}/{run}/answers/{n}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["answer"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{issue}/{run}/prompts/{n}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["prompt"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["timeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["usage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Act: {
            /** @default null */
            asked?: string | null;
            /** @enum {string} */
            do: "approve" | "reject" | "answer" | "retry" | "take" | "release";
            /** @default [] */
            flags?: string[];
            /** @default  */
            message?: string;
            /** @default null */
            phase?: string | null;
        };
        Asked: {
            answer: string | null;
            answered: string | null;
            at: string;
            by: string | null;
            phase: string;
            question: string;
            seq: number;
        };
        Cancel: {
            target: string;
        };
        Changed: {
            issues: string[] | null;
            seq: number;
        };
        Code: {
            code: string;
        };
        CostLine: {
            at: string | null;
            cost: number;
            issue: string | null;
            provider: string | null;
            runs: number;
            seqs: number[];
            text: string;
            tokens: number;
        };
        Counted: {
            failed: number;
            passed: number;
            skipped: number;
            total: number;
        };
        Course: {
            asked: components["schemas"]["Asked"][];
            edges: components["schemas"]["Step"][];
            runs: components["schemas"]["RunRecord"][];
            seq: number;
        };
        CreatedIssue: {
            description: string;
            priority: number;
            title: string;
            /** @enum {string} */
            type: "task" | "bug" | "feature" | "chore";
        };
        Daemon: {
            behind: boolean;
            budgets: {
                [key: string]: components["schemas"]["JsonValue"];
            }[];
            /** @enum {string} */
            disk: "ok" | "low";
            edit: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            ended: string | null;
            findings: number;
            journal: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            notices: {
                [key: string]: components["schemas"]["JsonValue"];
            }[];
            pauses: {
                [key: string]: components["schemas"]["JsonValue"];
            }[];
            pid: number | null;
            providers: {
                [key: string]: components["schemas"]["JsonValue"];
            }[];
            runners: {
                [key: string]: components["schemas"]["JsonValue"];
            }[];
            running: boolean;
            servers: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            since: string | null;
            trees: components["schemas"]["Trees"];
            version: string | null;
            why: string | null;
            workspace: string | null;
        };
        Dependency: {
            issue: string;
            state: ("person" | "running" | "time" | "parked" | "not_eligible" | "closed") | null;
            type: string;
        };
        Done: {
            said: string;
        };
        Entered: {
            person: string;
            token: string;
        };
        Finding: {
            code: string;
            message: string;
            phase: string | null;
            severity: string;
        };
        Issue: {
            code: string;
            cycle: number;
            due: string | null;
            flags: string[];
            issue: string;
            landing: components["schemas"]["Landing"] | null;
            phase: string | null;
            policy: string | null;
            priority: number;
            question: components["schemas"]["Question"] | null;
            reason: string;
            run: string | null;
            runs: number;
            since: string | null;
            /** @enum {string} */
            state: "person" | "running" | "time" | "parked" | "not_eligible" | "closed";
            title: string;
            tracker_status: string;
            type: string;
            verification: components["schemas"]["Proof"] | null;
            waits_for: number;
        };
        Issues: {
            items: components["schemas"]["Issue"][];
            next: string | null;
            seq: number;
            total: number;
        };
        IssueStory: {
            depends_on: components["schemas"]["Dependency"][];
            files: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            flags: string[];
            issue: components["schemas"]["Issue"];
            kept_since: string | null;
            landing: components["schemas"]["Landing"] | null;
            seq: number;
            story: components["schemas"]["Sentence"][];
            under_way: string[];
            usage: components["schemas"]["Used"];
            verification: {
                [key: string]: components["schemas"]["JsonValue"];
            } | null;
            verification_log: {
                [key: string]: components["schemas"]["JsonValue"];
            }[];
        };
        JsonValue: unknown;
        Landing: {
            commit: string | null;
            due: string | null;
            onto: string | null;
            state: string;
        };
        Left: {
            left: boolean;
        };
        Line: {
            at: string | null;
            issue: string | null;
            seqs: number[];
            text: string;
        };
        Move: {
            findings: string[];
            kind: string;
            move: string;
            source: string;
            target: string;
        };
        Now: {
            at: string;
            counts: {
                [key: string]: number;
            };
            daemon: components["schemas"]["Daemon"];
            policies: string[];
            running: components["schemas"]["Issue"][];
            seq: number;
            waiting: components["schemas"]["Issue"][];
        };
        OneRecord: {
            record: components["schemas"]["Record"];
            seq: number;
        };
        Outcome: {
            created_issues: components["schemas"]["CreatedIssue"][];
            needs_human: boolean;
            /** @enum {string} */
            next_action: "advance_phase" | "repeat_phase" | "need_human" | "none";
            pointers: string[];
            /** @enum {string} */
            result: "success" | "partial" | "failed";
            suggested_next_phase: string | null;
            summary: string;
            verdict: string | null;
        };
        Pause: {
            /** @default null */
            minutes?: number | null;
            /** @default null */
            provider?: string | null;
            /** @default  */
            why?: string;
        };
        Phase: {
            capabilities: string[];
            findings: string[];
            issues: number | null;
            /** @enum {string} */
            kind: "agent" | "human" | "end";
            name: string;
        };
        Policy: {
            edges: components["schemas"]["Move"][];
            findings: components["schemas"]["Finding"][];
            phases: components["schemas"]["Phase"][];
            policy: string;
            seq: number;
        };
        PromptSent: {
            n: number;
            sent: string | null;
        };
        Proof: {
            changed: boolean | null;
            green_before: number;
            status: string;
            summary: components["schemas"]["Counted"];
            tree: string | null;
            waived: string[];
        };
        Question: {
            asked: string | null;
            phase: string;
            text: string;
        };
        Record: {
            at: string;
            body: {
                [key: string]: unknown;
            };
            issue: string | null;
            kind: string;
            run: string | null;
            seq: number;
            type: string;
        };
        Records: {
            items: components["schemas"]["Record"][];
            next: number | null;
            seq: number;
        };
        Rejected: {
            at: string;
            n: number;
            then: string;
            why: string;
        };
        Report: {
            closes: {
                [key: string]: number;
            };
            sections: {
                [key: string]: (components["schemas"]["Line"] | components["schemas"]["CostLine"])[];
            };
            seq: number;
            since: string;
            until: string;
        };
        Resume: {
            /** @default null */
            provider?: string | null;
            /** @default  */
            why?: string;
        };
        Run: {
            choice: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            commits: string[];
            prompts: components["schemas"]["PromptSent"][];
            rejected: components["schemas"]["Rejected"][];
            run: components["schemas"]["RunRecord"];
            seq: number;
            turns: components["schemas"]["TurnRead"][];
            verified: {
                [key: string]: components["schemas"]["JsonValue"];
            }[];
        };
        RunRecord: {
            /** @enum {string} */
            access: "read" | "write";
            agent: string;
            attempt: number;
            capability: string;
            cost: number;
            ended_at: string | null;
            error: string | null;
            issue: string;
            model: string | null;
            outcome: components["schemas"]["Outcome"] | null;
            phase: string;
            /** Format: date-time */
            planned_at: string;
            provider: string | null;
            restarts: number;
            run: string;
            runner: string;
            session: string | null;
            started_at: string | null;
            /** @enum {string} */
            state: "planned" | "running" | "succeeded" | "failed" | "timed_out" | "stalled" | "aborted" | "lost" | "withdrawn";
            tokens: number;
            trace: number;
            visit: number;
            why: string;
        };
        Runs: {
            items: components["schemas"]["RunRecord"][];
            next: number | null;
            seq: number;
        };
        Sentence: {
            at: string;
            fact: string;
            reason: string;
            seq: number;
            trace: number;
            type: string;
        };
        Step: {
            /** @enum {string} */
            kind: "next" | "retry" | "back" | "cycle";
            source: string;
            target: string;
            why: string;
        };
        Timeline: {
            agent: number[];
            agents: string[];
            begin: number[];
            epoch: number;
            issue: number[];
            issues: string[];
            length: number[];
            run: string[];
            seq: number;
            state: number[];
            states: string[];
        };
        Trees: {
            kept: number;
            next: string | null;
        };
        TurnRead: {
            answered: boolean;
            at: string;
            cost: number | null;
            error: string | null;
            model: string | null;
            n: number;
            provider: string | null;
            tokens: number | null;
        };
        Usage: {
            by: string;
            rows: components["schemas"]["UsageRow"][];
            seq: number;
            since: string | null;
            total: components["schemas"]["Used"];
        };
        UsageRow: {
            cost: number;
            name: string | null;
            runs: number;
            tokens: number;
        };
        Used: {
            cost: number;
            runs: number;
            tokens: number;
        };
        Words: {
            cut: boolean;
            text: string | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    cancel: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Cancel"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
        };
    };
    enter: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Code"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entered"];
                };
            };
        };
    };
    events: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Changed"];
                };
            };
        };
    };
    issues: {
        parameters: {
            query?: {
                after?: string | null;
                limit?: number;
                phase?: string | null;
                policy?: string | null;
                q?: string;
                state?: ("person" | "running" | "time" | "parked" | "not_eligible" | "closed") | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Issues"];
                };
            };
        };
    };
    issue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                issue: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IssueStory"];
                };
            };
        };
    };
    act: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                issue: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Act"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
        };
    };
    course: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                issue: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Course"];
                };
            };
        };
    };
    leave: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Left"];
                };
            };
        };
    };
    now: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Now"];
                };
            };
        };
    };
    pause: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Pause"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
        };
    };
    policy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                policy: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Policy"];
                };
            };
        };
    };
    records: {
        parameters: {
            query?: {
                after?: number;
                issue?: string | null;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Records"];
                };
            };
        };
    };
    record: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                seq: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OneRecord"];
                };
            };
        };
    };
    report: {
        parameters: {
            query?: {
                since?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Report"];
                };
            };
        };
    };
    resume: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Resume"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
        };
    };
    runs: {
        parameters: {
            query?: {
                agent?: string | null;
                before?: number | null;
                issue?: string | null;
                limit?: number;
                state?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Runs"];
                };
            };
        };
    };
    run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                issue: string;
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
        };
    };
    answer: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                issue: string;
                n: string;
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Words"];
                };
            };
        };
    };
    prompt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                issue: string;
                n: string;
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Words"];
                };
            };
        };
    };
    timeline: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Timeline"];
                };
            };
        };
    };
    usage: {
        parameters: {
            query?: {
                by?: "provider" | "issue" | "phase" | "agent" | "day";
                since?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Usage"];
                };
            };
        };
    };
}
