"""What the child refuses, what it sees of its parent and what the sandbox leaves usable."""

import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Config
from swarm_tasks.answers import AnswerRules
from swarm_tasks.child.landlock import landlock_version
from swarm_tasks.child.sandbox import Measure
from swarm_tasks.keyspace import INDEX_END
from swarm_tasks.pipe import (
    Draw,
    Drawn,
    Draws,
    Failed,
    Job,
    Ready,
    Scored,
    ScoreRequest,
    decode_reply,
    encode_message,
)
from swarm_tasks.process import ChildProcess
from swarm_tasks.verifier import Verifier
from tests.tasks.faulty import REPOSITORY, child_pid

pytestmark = pytest.mark.slow

# A system that refuses a limit on memory, as macOS reportedly does.
WITHOUT_A_LIMIT = """
import json, resource
from swarm_tasks.child.sandbox import apply_sandbox
set_limit, kept = resource.setrlimit, []
def refuse_memory(limit, values):
    if limit == resource.RLIMIT_AS:
        raise ValueError("current limit exceeds maximum limit")
    set_limit(limit, values)
    kept.append(limit)  # recorded here, because the sandbox forbids the query
resource.setrlimit = refuse_memory
took_hold = apply_sandbox()
limits = {getattr(resource, f"RLIMIT_{name}") for name in ("CORE", "FSIZE", "NOFILE", "NPROC")}
print(json.dumps([sorted(took_hold), limits == set(kept)]))
"""


# Errors by which each measure refuses: seccomp as a missing right, Landlock as denied access.
_BY_FILTER = {"EPERM"}
_REFUSALS = {
    Measure.NETWORK: _BY_FILTER,
    Measure.PROCESSES: _BY_FILTER,
    Measure.ATTRIBUTES: _BY_FILTER,
    Measure.SHARED_MEMORY: _BY_FILTER,
    Measure.SCHEDULING: _BY_FILTER,
    Measure.FILESYSTEM: {"EACCES"},
    Measure.RLIMITS: {"MemoryError", "ENOMEM", "RuntimeError"},
}


@pytest.fixture(scope="module")
def child() -> Iterator[ChildProcess]:
    """Yield a child without a parent that checks the requests first."""
    child = ChildProcess("swarm_tasks.child", "5")
    try:
        decode_reply(child.receive(deadline_s=60), Ready)
        yield child
    finally:
        child.kill()


@pytest.fixture(scope="module", params=[(), ("without Landlock",)], ids=["all", "no-landlock"])
def locked_in(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, dict[str, str | None]]:
    secret = tmp_path_factory.mktemp("home") / "secret"
    secret.write_text("token")
    ran = subprocess.run(
        [sys.executable, "-m", "tests.tasks.probing_child", str(secret), *request.param],
        capture_output=True,
        check=True,
        cwd=REPOSITORY,
    )
    result: dict[str, dict[str, str | None]] = json.loads(ran.stdout)
    return result


@pytest.mark.parametrize(
    ("dataset", "config", "index", "code"),
    [
        ("puzzle24", {}, 0, ErrorCode.TASK_DATASET),
        ("no_such_dataset", {}, 0, ErrorCode.TASK_DATASET),
        ("chain_sum", {"max_terms": 99}, 0, ErrorCode.TASK_CONFIG),
        ("chain_sum", {}, INDEX_END, ErrorCode.TASK_INDEX),
    ],
)
def test_child_itself_refuses_what_is_not_allowed(
    child: ChildProcess, dataset: str, config: Config, index: int, code: ErrorCode
) -> None:
    child.send(encode_message(Draws([Draw(dataset, config, 1, [index], None)])), deadline_s=10)
    [failed] = decode_reply(child.receive(deadline_s=10), Drawn).made
    assert isinstance(failed, Failed)
    assert failed.code == code
    request = ScoreRequest([Job(dataset, config, 1, index, ["text"])], AnswerRules.EXACT, 5.0)
    child.send(encode_message(request), deadline_s=10)
    with pytest.raises(RefusedError) as caught:
        decode_reply(child.receive(deadline_s=10), Scored)
    assert caught.value.code is code


def test_environment_of_the_child_contains_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "do-not-tell")
    with Verifier() as verifier:
        environment = Path(f"/proc/{child_pid(verifier)}/environ").read_bytes()
    names = {line.split(b"=")[0].decode() for line in environment.split(b"\0") if line}
    assert names <= {
        *("PYTHONHASHSEED", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG"),
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    }
    assert b"PYTHONHASHSEED=0" in environment


def test_every_measure_that_the_system_supports_takes_effect(verifier: Verifier) -> None:
    expected = {Measure.RLIMITS}
    if sys.platform == "linux":
        expected.add(Measure.NO_NEW_PRIVS)
        if landlock_version() > 0:
            expected.add(Measure.FILESYSTEM)
        if platform.machine() in ("x86_64", "aarch64"):
            expected |= {Measure.NETWORK, Measure.PROCESSES}
            expected |= {Measure.ATTRIBUTES, Measure.SHARED_MEMORY, Measure.SCHEDULING}
    assert verifier.isolation == expected


@pytest.mark.parametrize(
    ("measure", "actions"),
    [
        (Measure.NETWORK, ["socket", "unix socket"]),
        (
            Measure.PROCESSES,
            [
                *("fork", "program", "kill", "own signal", "queued signal", "anonymous file"),
                *("queued signal of a thread", "signal of a pipe", "signal of a pipe to a thread"),
                *("compare", "reboot"),
            ],
        ),
        (Measure.FILESYSTEM, ["passwd", "parent", "secret", "write", "list", "shm file"]),
        (Measure.RLIMITS, ["memory", "shared memory", "thread"]),
        (
            Measure.ATTRIBUTES,
            [
                *("chmod", "fchmod", "fchmodat", "chown", "lchown", "utime", "utime of a library"),
                *("set attribute", "read attribute", "list attributes", "remove attribute"),
                *("new attribute call", "watch", "watch all"),
                *("truncate", "truncate by opening", "new open call"),
            ],
        ),
        (
            Measure.SHARED_MEMORY,
            [
                *("System V memory", "attach memory", "System V semaphore", "System V queue"),
                *("POSIX queue", "secret memory"),
            ],
        ),
        (
            Measure.SCHEDULING,
            ["affinity", "scheduler", "scheduler attributes", "priority", "disk priority"],
        ),
    ],
)
def test_actions_forbidden_by_a_measure_are_refused(
    locked_in: dict[str, dict[str, str | None]], measure: Measure, actions: list[str]
) -> None:
    if measure not in locked_in["took_hold"]:
        pytest.skip(f"this system has no {measure}")
    found = {action: locked_in["refused"][action] for action in actions}
    # "ENOSYS" would mean a kernel without the call, which proves nothing.
    assert set(found.values()) <= _REFUSALS[measure], found


def test_refused_memory_limit_does_not_prevent_other_limits() -> None:
    ran = subprocess.run([sys.executable, "-c", WITHOUT_A_LIMIT], capture_output=True, check=True)
    took_hold, all_others_are_set = json.loads(ran.stdout)
    assert Measure.RLIMITS not in took_hold
    assert all_others_are_set


def test_standard_library_stays_readable(
    locked_in: dict[str, dict[str, str | None]],
) -> None:
    assert locked_in["refused"]["standard library"] is None
