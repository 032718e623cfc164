"""Which paths of a repository are of what kind, in the ecosystems that are common: what `impact` begins with.

Each entry is a glob from the repository's top (`ashep.core.policy.globs`); a name without a folder counts in every
folder.
"""

import re


def tidy(path: str) -> str:
    """Take `.`, doubled slashes and what `..` undoes out of a path; what leads out of its folder begins with `..`."""
    parts = list[str]()
    for part in path.split("/"):
        if part != "..":
            parts += [part] if part not in ("", ".") else []
        elif parts and parts[-1] != "..":
            parts.pop()
        elif not path.startswith("/"):
            parts.append(part)
    return ("/" if path.startswith("/") else "") + "/".join(parts)


def _globs(text: str) -> tuple[str, ...]:
    return tuple(glob if "/" in glob else f"**/{glob}" for glob in text.split())


def _with_folders(text: str) -> tuple[str, ...]:
    """Give the folders, too, in which the files stand: a link in the place of one is all of its files."""
    globs = _globs(text)
    parts = (glob.removeprefix("**/").split("/")[:-1] for glob in globs)
    folders = ("/".join(names[:length]) for names in parts for length in range(1, len(names) + 1))
    return tuple(dict.fromkeys((*globs, *(f"**/{folder}" for folder in folders if folder.startswith(".")))))


PUBLIC_API = _globs("""
openapi*.yaml openapi*.yml openapi*.json swagger*.yaml swagger*.yml swagger*.json asyncapi*.yaml asyncapi*.yml
asyncapi*.json *.proto *.graphql *.graphqls *.gql *.thrift *.avsc *.wsdl *.xsd *.smithy *.raml *.capnp *.fbs *.wit
*.api.md *.d.ts *.pyi PublicAPI.Shipped.txt PublicAPI.Unshipped.txt *.api public-api.* api-extractor.json
""")
"""Contracts with others, in languages made for that."""

MIGRATIONS = _globs("""
**/migrations/** **/migration/** **/db/migrate/** **/alembic/** **/flyway/** **/liquibase/** **/changesets/*.sql
V*__*.sql U*__*.sql R__*.sql db.changelog* databasechangelog* schema.prisma schema.sql structure.sql **/db/schema.rb
**/drizzle/** **/evolutions/** alembic.ini
""")
"""What changes a database that exists."""

LOCK_FILES = _globs("""
poetry.lock uv.lock pdm.lock Pipfile.lock pylock*.toml conda-lock.yml package-lock.json npm-shrinkwrap.json yarn.lock
pnpm-lock.yaml bun.lock bun.lockb deno.lock go.sum go.work.sum Cargo.lock gradle.lockfile Gemfile.lock composer.lock
packages.lock.json mix.lock rebar.lock pubspec.lock Podfile.lock Package.resolved Cartfile.resolved conan.lock
flake.lock renv.lock Manifest.toml stack.yaml.lock cabal.project.freeze MODULE.bazel.lock .terraform.lock.hcl
""")
"""What a tool writes: their lines are not counted."""

DEPENDENCIES = LOCK_FILES + _globs("""
requirements*.txt requirements*.in constraints*.txt **/requirements/*.txt **/requirements/*.in pyproject.toml setup.py
setup.cfg Pipfile environment.yml environment.yaml package.json pnpm-workspace.yaml .npmrc .yarnrc .yarnrc.yml
deno.json deno.jsonc bower.json go.mod go.work Cargo.toml pom.xml build.gradle build.gradle.kts settings.gradle
settings.gradle.kts libs.versions.toml **/gradle/wrapper/** build.sbt **/project/plugins.sbt ivy.xml Gemfile *.gemspec
composer.json *.csproj *.fsproj *.vbproj packages.config Directory.Packages.props Directory.Build.props NuGet.config
paket.dependencies mix.exs rebar.config pubspec.yaml Podfile Package.swift Cartfile conanfile.txt conanfile.py
vcpkg.json WORKSPACE WORKSPACE.bazel MODULE.bazel flake.nix *.cabal cabal.project stack.yaml cpanfile Project.toml
deps.edn project.clj shard.yml .gitmodules
""")
"""What says which foreign code is used."""

CI = _with_folders("""
**/.github/workflows/** **/.github/actions/** **/.github/dependabot.yml **/.github/dependabot.yaml CODEOWNERS
**/.gitlab-ci*.yml **/.gitlab-ci*.yaml **/.gitlab/** **/.circleci/** .travis.yml azure-pipelines*.yml
azure-pipelines*.yaml **/.azure-pipelines/** **/.azuredevops/** Jenkinsfile* bitbucket-pipelines.yml **/.buildkite/**
.drone.* .woodpecker* **/.woodpecker/** appveyor.yml .appveyor.yml .cirrus.yml .cirrus.star **/.teamcity/**
cloudbuild.yaml cloudbuild.yml cloudbuild.json buildspec*.yml **/.semaphore/** **/.forgejo/** **/.gitea/** **/.ci/**
ci/** codefresh.yml wercker.yml **/.tekton/** **/.harness/** renovate.json renovate.json5 .renovaterc*
.pre-commit-config.yaml **/.husky/** **/.githooks/** lefthook.yml .lefthook.yml codecov.yml .codecov.yml
sonar-project.properties
.gitattributes .lfsconfig .envrc .devcontainer.json **/.devcontainer/** **/.vscode/tasks.json **/.vscode/settings.json
**/.vscode/launch.json **/.vscode/extensions.json *.code-workspace **/.idea/runConfigurations/** **/.run/**
**/.idea/externalDependencies.xml **/.idea/watcherTasks.xml **/.zed/** **/.fleet/**
.exrc .nvim.lua .nvimrc .dir-locals.el
.mise.toml mise.toml .tool-versions .direnvrc .gitpod.yml
""")
"""What judges a change before people do, and what runs by itself where somebody opens or merges it."""

RULES = _with_folders("**/.agent-shepherd/** **/.beads/**")
"""What Agent Shepherd itself goes by, and its tracker."""

DECIDING = _with_folders("""
conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini noxfile.py setup.cfg pyproject.toml .coveragerc
sitecustomize.py usercustomize.py *.pth Makefile GNUmakefile *.mk justfile .justfile Taskfile.yml Taskfile.yaml
package.json jest.config.* vitest.config.* vitest.workspace.* vite.config.* babel.config.* .babelrc* .mocharc* .taprc
ava.config.* karma.conf.* playwright.config.* cypress.config.* cypress.json bunfig.toml deno.json deno.jsonc .npmrc
.yarnrc.yml **/node_modules/** Cargo.toml build.rs **/.cargo/config.toml **/.cargo/config rust-toolchain
rust-toolchain.toml **/.config/nextest.toml pom.xml mvnw **/.mvn/** build.gradle build.gradle.kts settings.gradle
settings.gradle.kts gradle.properties gradlew **/buildSrc/** Rakefile .rspec spec_helper.rb rails_helper.rb
composer.json phpunit.xml phpunit.xml.dist phpunit.dist.xml *.runsettings Directory.Build.targets
**/.yarn/releases/** **/.yarn/plugins/** .pnp.cjs .pnp.loader.mjs .pnpmfile.cjs gradle-wrapper.jar
gradle-wrapper.properties .bazelrc .bazeliskrc **/tools/bazel CMakePresets.json turbo.json nx.json uv.toml hatch.toml
poetry.toml pixi.toml dotnet-tools.json global.json **/.bundle/config .sbtopts .jvmopts test_helper.exs .nycrc*
nyc.config.* .c8rc* magefile.go build.zig build.xml SConstruct wscript Makefile.am configure.ac dodo.py behat.yml
codeception.yml mypy.ini .mypy.ini ruff.toml .ruff.toml .flake8 .pylintrc pylintrc pyrightconfig.json .eslintrc*
eslint.config.* .eslintignore biome.json biome.jsonc .oxlintrc.json .stylelintrc* tsconfig*.json .golangci.* clippy.toml
.clippy.toml rustfmt.toml .rustfmt.toml .rubocop.yml .shellcheckrc phpstan.neon* psalm.xml
""")
"""What decides how a check's program runs, next to what the check's command names."""

TESTS = _globs("""
test_*.py *_test.py *_tests.py tests.py conftest.py **/test/** **/tests/** **/__tests__/** **/spec/** **/specs/**
**/e2e/** **/testdata/** *.test.* *.spec.* *.cy.ts *.cy.js *_test.go *_test.rs *Test.java *Tests.java *IT.java
*Test.kt *Tests.kt *Spec.scala *Test.scala *Spec.groovy *Test.cs *Tests.cs *Test.php *_spec.rb *_test.rb *Tests.swift
*_test.cc *_test.cpp *_test.c *_unittest.cc *_test.exs *.bats *_test.dart
""")
"""Tests and what they need."""

_MODULES = """
abc aifc argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect builtins bz2 cProfile
calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall concurrent configparser
contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis doctest email
encodings enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt
getpass gettext glob graphlib grp gzip hashlib heapq hmac html http imaplib imghdr imp importlib inspect io ipaddress
itertools json keyword linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder
multiprocessing netrc nis nntplib numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes
pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pyexpat queue
quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal
site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics
string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios
textwrap threading time timeit token tokenize tomllib trace traceback tracemalloc tty types typing unicodedata
unittest urllib uu uuid warnings wave weakref webbrowser wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib
zoneinfo pytest _pytest pluggy iniconfig tox nox coverage nose2 behave hatch trial mypy ruff pyright pylint flake8
xdist pytest_cov anyio attr colorama exceptiongroup execnet hypothesis packaging pygments pytest_asyncio pytest_mock
sniffio tomli typing_extensions
"""
MODULES = frozenset(_MODULES.split())
"""Modules of Python's own, test runners, and what these import."""
_IMPORTED = re.compile(r"(?P<module>\w+)(?:/__init__)?\.(?:pyc?|(?:[\w-]+\.)?(?:so|pyd))")


def shadows(path: str, *, linked: bool = False) -> bool:
    """Whether `python -m` imports a file, from the repository's top, where it would import one of `MODULES`: as source,
    compiled, or as a library. `linked`: it is a link or a submodule, and may lead to a package.
    """
    found = _IMPORTED.fullmatch(path)
    return (found is not None and found["module"] in MODULES) or (linked and path in MODULES)
