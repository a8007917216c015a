"""The checks that `swarm-node doctor` makes, of this machine and of the coordinator."""

import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Literal

import httpx
import torch

from node_client.errors import USE_WSL, NodeError
from node_client.model.memory.limits import limit_memory
from node_client.model.policy import Policy
from node_client.runtime.isolation import describe_missing
from node_client.site import Site
from node_client.swarm.handshake import UnansweredError, check_admission
from swarm_protocol.errors import RefusedError
from swarm_tasks import process
from swarm_tasks.keyspace import Part
from swarm_tasks.starter import STARTER_SEASON_SEED, STARTER_TASKS
from swarm_tasks.verifier import Verifier

LITTLE_DISK_BYTES = 2 << 30
NO_DISK_BYTES = 200 << 20
CLOCK_SKEW_S = 30.0
HTTP_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class DoctorCheck:
    """The result of one check: what was found (`detail`), and what to do about it (`remedy`).

    A problem at level `warn` does not prevent training. `remedy` is empty at level `ok`.
    """

    name: str
    level: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str = ""


def check_machine(
    *, model: str, device: str, folder: Path, gpu_fraction: float | None = None
) -> Iterator[DoctorCheck]:
    """Make the checks that need no coordinator, and yield each result as soon as it is known.

    `folder` is where checkpoints will be, and `gpu_fraction` the usable part of the GPU's memory.
    """
    yield check_python()
    yield check_torch()
    yield check_disk(folder)
    yield check_verifier()
    yield check_model(model, device=device, gpu_fraction=gpu_fraction)


def check_python() -> DoctorCheck:
    """Report the version of Python and the operating system.

    This check always passes, because pip does not install the client on a Python that is too old.
    """
    version = platform.python_version()
    return DoctorCheck("Python", "ok", f"{version} on {platform.system()} {platform.machine()}")


def check_torch() -> DoctorCheck:
    """Report the version of torch and its device; warn without a GPU."""
    version = torch.__version__
    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        name = torch.cuda.get_device_name()
        return DoctorCheck("torch", "ok", f"{version}, {name}, {_gib(free)} of {_gib(total)} free")
    if torch.backends.mps.is_available():
        return DoctorCheck("torch", "ok", f"{version}, Apple GPU")
    return DoctorCheck(
        "torch",
        "warn",
        f"{version}, no GPU, {torch.get_num_threads()} CPU threads",
        "Small models train on a CPU; for larger ones install torch for your GPU (pytorch.org).",
    )


def check_disk(folder: Path) -> DoctorCheck:
    """Check the free disk space for checkpoints in a folder, which need not exist yet.

    The check fails below NO_DISK_BYTES and warns below LITTLE_DISK_BYTES.
    """
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    detail = f"{_gib(free)} free for {folder}"
    if free < NO_DISK_BYTES:
        return DoctorCheck(
            "disk", "fail", detail, "Free some space, or choose another --state-dir."
        )
    if free < LITTLE_DISK_BYTES:
        return DoctorCheck("disk", "warn", detail, "Checkpoints of a large model may not fit.")
    return DoctorCheck("disk", "ok", detail)


def check_verifier() -> DoctorCheck:
    """Check that the verifier works; warn if its child process lacks protections."""
    choice = STARTER_TASKS[0]
    try:
        with Verifier() as verifier:
            task = verifier.draw(
                key=b"doctor",
                part=Part.TRAINING,
                dataset=choice.dataset,
                config=choice.config,
                seed=STARTER_SEASON_SEED,
                counter=0,
            )
            verifier.score(task.spec, ["<answer>0</answer>"])
            isolation = verifier.isolation
    except RefusedError as problem:
        remedy = "Uninstall the client, and install it as the coordinator's join page says."
        if not process.SUPPORTED:
            remedy = USE_WSL
        return DoctorCheck("verifier", "fail", problem.message, remedy)
    detail = f"scores answers in a child process with {', '.join(sorted(isolation)) or 'no limits'}"
    if remedy := describe_missing(isolation):
        return DoctorCheck("verifier", "warn", detail, remedy)
    return DoctorCheck("verifier", "ok", detail)


def check_model(name: str, *, device: str, gpu_fraction: float | None = None) -> DoctorCheck:
    """Check that a model can be loaded and can generate text.

    `gpu_fraction` is the part of the GPU's memory that the model may use, None for all.
    """
    try:
        limit_memory(device, gpu_fraction)
        policy = Policy.load(name, device=device)
        policy.generate(["1 + 1 = ?"], completions=1, max_new_tokens=8, temperature=0.0)
    except NodeError as problem:
        return DoctorCheck("model", "fail", problem.message, problem.fix)
    except torch.OutOfMemoryError:
        remedy = "Choose a smaller --model, or stop other programs that use the GPU."
        return DoctorCheck("model", "fail", f"{name} does not fit into memory", remedy)
    detail = f"{policy.name}, {policy.parameters:,} parameters, answers on {policy.device}"
    return DoctorCheck("model", "ok", detail)


async def check_site(site: Site, *, token: str) -> list[DoctorCheck]:
    """Test a coordinator's web server, clock, encryption and node socket; return the results.

    With an empty `token` the socket cannot be tested, and its result has the level `warn`. If the
    web server does not answer, or answers with a redirect or an error, nothing else is tested.
    """
    checks = await _check_web(site)
    if checks[0].level == "fail":
        return checks
    if not site.encrypted:
        remedy = "Use the https address if there is one: others on the network can read the token."
        checks.append(DoctorCheck("encryption", "warn", f"none to {site.base}", remedy))
    if token:
        checks.append(await _check_socket(site, token=token))
    else:
        remedy = f"To test it too: swarm-node login {site.base}"
        checks.append(DoctorCheck("node socket", "warn", "not tested without a token", remedy))
    return checks


async def _check_web(site: Site) -> list[DoctorCheck]:
    try:
        async with httpx.AsyncClient(timeout=HTTP_TIMEOUT_S) as client:
            response = await client.get(site.health)
            response.raise_for_status()
    except httpx.HTTPError as problem:
        remedy = "Check the address, your network, and the coordinator's status page."
        detail = f"{site.health}: {problem or type(problem).__name__}"
        return [DoctorCheck("coordinator", "fail", detail, remedy)]
    answered = DoctorCheck("coordinator", "ok", f"{site.base} answers")
    date = read_date(response.headers.get("Date", ""))
    if date is None:
        return [answered]
    return [answered, compare_clocks(date, now=datetime.now(UTC))]


def read_date(header: str) -> datetime | None:
    """Return the time in an HTTP Date header, None if it is invalid. "-0000" is read as UTC."""
    try:
        date = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)


def compare_clocks(server: datetime, *, now: datetime) -> DoctorCheck:
    """Compare this machine's time `now` with the coordinator's; warn above CLOCK_SKEW_S."""
    skew = (now - server).total_seconds()
    if abs(skew) <= CLOCK_SKEW_S:
        return DoctorCheck("clock", "ok", f"within {CLOCK_SKEW_S:.0f} s of the coordinator's")
    direction = "ahead of" if skew > 0 else "behind"
    remedy = "Enable time synchronisation (NTP); otherwise countdowns are wrong."
    return DoctorCheck("clock", "warn", f"{abs(skew):.0f} s {direction} the coordinator's", remedy)


async def _check_socket(site: Site, *, token: str) -> DoctorCheck:
    try:
        await check_admission(site.socket, token)
    except NodeError as problem:
        return DoctorCheck("node socket", "fail", problem.message, problem.fix)
    except UnansweredError as problem:
        remedy = "A proxy may not allow WebSockets."
        return DoctorCheck("node socket", "fail", str(problem), remedy)
    return DoctorCheck("node socket", "ok", "the coordinator accepts the token")


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
