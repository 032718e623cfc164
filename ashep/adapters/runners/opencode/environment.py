"""What a managed server gets of our environment: its tools inherit it, and with it every agent's shell.

It is a list of what may pass, because nobody can list what is secret: the token of a forge, the address that people are
told by, and whatever else stands in the environment of a shell stay out. What a provider, or a tool of the project,
needs beyond that is named in `runners.opencode.environment`.
"""

import re
from collections.abc import Collection, Mapping

PROVIDERS = frozenset(
    {
        "AI_GATEWAY_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "AWS_ACCESS_KEY_ID",
        "AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE", "AWS_REGION", "AWS_ROLE_ARN", "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AZURE_API_KEY", "AZURE_COGNITIVE_SERVICES_API_KEY",
        "AZURE_COGNITIVE_SERVICES_RESOURCE_NAME", "AZURE_RESOURCE_NAME", "BASETEN_API_KEY", "CEREBRAS_API_KEY",
        "CHUTES_API_KEY", "COHERE_API_KEY", "DASHSCOPE_API_KEY", "DEEPINFRA_API_KEY", "DEEPSEEK_API_KEY",
        "FIREWORKS_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_PROJECT", "GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_VERTEX_LOCATION", "GOOGLE_VERTEX_PROJECT",
        "GROQ_API_KEY", "HF_TOKEN", "KIMI_API_KEY", "LLAMA_API_KEY", "MINIMAX_API_KEY", "MISTRAL_API_KEY",
        "MOONSHOT_API_KEY", "NEBIUS_API_KEY", "NOVITA_API_KEY", "NVIDIA_API_KEY", "OLLAMA_API_KEY", "OPENAI_API_KEY",
        "OPENAI_BASE_URL", "OPENROUTER_API_KEY", "PERPLEXITY_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_API_KEY",
        "VENICE_API_KEY", "XAI_API_KEY", "ZAI_API_KEY", "ZHIPU_API_KEY",
    }
)  # fmt: skip
"""Variables by which OpenCode's providers are reached. `GITHUB_TOKEN` and `GITLAB_TOKEN` are a forge's, too."""

_PLAIN = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "TZ", "TMPDIR",
        "TMP", "TEMP", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "BEADS_DIR", "BEADS_DB", "BD_DB",
        "BD_DISABLE_METRICS", "BD_NON_INTERACTIVE", "BD_NO_PAGER", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "VIRTUAL_ENV", "CONDA_PREFIX",
        "JAVA_HOME", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR", "PNPM_HOME", "PYENV_ROOT",
    }
)  # fmt: skip
_FAMILIES = ("LC_", "XDG_")
_PROXIES = frozenset({"http_proxy", "https_proxy", "no_proxy", "all_proxy"})
_PAST = "no_proxy"
"""The variable, in either case, that names hosts which no proxy is asked for."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_KEY = re.compile(r"_(API_?KEY|KEY|TOKEN|PAT|SECRET|CREDENTIALS)\Z")


def filter_environment(
    environ: Mapping[str, str],
    names: Collection[str],
    secret: Collection[str],
    families: tuple[str, ...] = ("OPENCODE_",),
) -> dict[str, str]:
    """The part of an environment that a runner gets: `named` pass, too, and what begins as one of its `families` does;
    `secret` never do. Loopback is reached past every proxy.
    """
    always, families = {*_PLAIN, *PROVIDERS, *names}, (*_FAMILIES, *families)
    allowed = {
        name: value
        for name, value in environ.items()
        if name not in secret and (name in always or name.startswith(families) or name.lower() in _PROXIES)
    }
    return allowed | past_proxies(allowed)


def past_proxies(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that keep programs from asking a proxy for this machine; none where they are set."""
    if not any(name.lower() in _PROXIES - {_PAST} and value for name, value in environ.items()):
        return {}
    lower, upper = environ.get(_PAST), environ.get(_PAST.upper())
    values = {_PAST: lower or upper or "", _PAST.upper(): upper or lower or ""}
    hosts = {name: [host.strip() for host in value.split(",") if host.strip()] for name, value in values.items()}
    return {
        name: ",".join([*there, *missing])
        for name, there in hosts.items()
        if "*" not in there and (missing := [host for host in _LOOPBACK if host not in there])
    }


def left_out(environ: Mapping[str, str], names: Collection[str], secret: Collection[str]) -> tuple[str, ...]:
    """Names that look as if a provider might need them, and do not pass; those of secrets only where they are named."""
    passing = filter_environment(environ, names, secret)
    return tuple(
        sorted(
            name
            for name in environ
            if name not in passing and (name in names or (name not in secret and _KEY.search(name) is not None))
        )
    )
