"""Runs the tests of a pytest session on simulated RDMA devices, and fails those that misuse them.

``pytest --verbsim`` starts pytest again under ``verbsim exec``. A test fails if the diagnosis finds a mistake of this
process while the test runs. What it finds in other processes, or at the end, is on the standard error, and the
session then ends with status 99.
"""

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

import verbsim

#: Set in the pytest that runs under ``verbsim exec``.
_STARTED = "PYTEST_VERBSIM_STARTED"

#: Options with which pytest runs no test. Then no device is used, which `exec` would report.
_NO_TESTS = (
    "help",
    "version",
    "markers",
    "collectonly",
    "showfixtures",
    "show_fixtures_per_test",
    "setupplan",
    "cacheshow",
)


def pytest_addoption(parser):
    group = parser.getgroup("verbsim", "simulated RDMA devices")
    group.addoption("--verbsim", action="store_true", help="run the tests on simulated devices (verbsim exec)")
    group.addoption(
        "--verbsim-options",
        metavar="OPTIONS",
        help="options of `verbsim exec`, such as '--profile mlx5 --suppressions FILE'",
    )
    group.addoption(
        "--verbsim-fail-on",
        choices=["error", "warning"],
        help="the least level of a finding that fails a test; the default is error",
    )
    parser.addini("verbsim", "run the tests on simulated devices, as with --verbsim", type="bool", default=False)
    parser.addini("verbsim_options", "options of `verbsim exec`", default="")
    parser.addini("verbsim_fail_on", "error or warning", default="error")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config):
    # Before a conftest opens devices, and before pytest captures the output.
    if _is_asked_for(early_config):
        _start_again(early_config)
    yield


def pytest_configure(config):
    if _is_asked_for(config):
        config.pluginmanager.register(_Judge(_fail_on(config)), "verbsim_judge")


def pytest_report_header(config):
    if _is_asked_for(config):
        return f"verbsim: simulated devices, findings of level {_fail_on(config)} fail a test"
    return None


class _Judge:
    """Fails a phase of a test (setup, call, teardown) in which the diagnosis found a mistake."""

    def __init__(self, fail_on):
        self._levels = ("error",) if fail_on == "error" else ("error", "warning")
        self._mark = 0

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        found = verbsim.findings(self._mark)
        self._mark = verbsim.mark(f"{item.nodeid} {call.when}")
        wrong = [finding for finding in found if finding.level in self._levels]
        if not wrong:
            return
        text = "\n".join(f"{finding}\nhelp: {finding.help}" for finding in wrong)
        if report.failed or hasattr(report, "wasxfail"):
            report.sections.append(("verbsim", text))
        else:
            report.outcome = "failed"
            report.longrepr = text


def _option(config, name):
    """The value of a command-line option, or else of the configuration file."""
    given = getattr(config.known_args_namespace, name, None)
    return given or config.getini(name)


def _is_asked_for(config):
    given = config.known_args_namespace
    return bool(_option(config, "verbsim")) and not any(getattr(given, name, None) for name in _NO_TESTS)


def _fail_on(config):
    level = _option(config, "verbsim_fail_on")
    if level not in ("error", "warning"):
        raise pytest.UsageError(f"verbsim_fail_on is {level}: allowed are error, warning")
    return level


def _start_again(config):
    """Becomes `verbsim exec` with the same pytest, unless this is that pytest."""
    if verbsim.is_simulated():
        return
    if _STARTED in os.environ:
        raise pytest.UsageError("verbsim exec has no effect on this Python: `verbsim doctor -- python3` says why")
    arguments = [str(argument) for argument in config.invocation_params.args]
    if arguments != sys.argv[1:]:
        raise pytest.UsageError("a program called pytest.main(): run that program under `verbsim exec`")
    try:
        options = shlex.split(_option(config, "verbsim_options"))
    except ValueError as error:
        raise pytest.UsageError(f"verbsim_options is {_option(config, 'verbsim_options')!r}: {error}") from None
    # Older versions of Python do not say how they were started.
    python = getattr(sys, "orig_argv", [sys.executable, "-m", "pytest", *arguments])
    command = [_program(), "exec", "--fail-on", _fail_on(config), *options, "--", *python]
    os.environ[_STARTED] = "1"
    os.execv(command[0], command)


def _program():
    """The program that was installed with this module, or else the one on the PATH."""
    own = Path(sysconfig.get_path("scripts"), "verbsim")
    program = str(own) if own.exists() else shutil.which("verbsim")
    if program is None:
        raise pytest.UsageError(f"the program verbsim is neither {own} nor on the PATH")
    return program
