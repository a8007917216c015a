"""Test what honest nodes gain from the swarm, and which nodes are named, if 6 of 20 are hostile.

`HOSTILE=1 pytest -o log_cli=true --log-cli-level=WARNING tests/swarm/test_hostile.py` measures for
minutes instead of seconds. With these options, and when a test fails, the figures are printed.
"""

import json
import logging
import os
import re
import sys
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from django.utils import timezone

from judge.models import Season
from judge.services.seasons import start_season
from node_client.site import parse_site
from swarm_tasks.verifier import Verifier
from swarm_web.local.process import SiteProcess
from swarm_web.nodes.services import create_node
from swarm_web.relay.conduct import Charge
from swarm_web.relay.models import Conduct
from tests.processes import PROJECT, eventually, running
from tests.swarm.hostile import ATTACKS
from tests.swarm.learners import Learners, Pace
from tests.swarm.scenario import TASKS
from tests.swarm.sites import running_site

pytestmark = [pytest.mark.swarm, pytest.mark.django_db]

log = logging.getLogger(__name__)

IS_LONG = os.environ.get("HOSTILE") == "1"
HONEST = 14
# Slower than possible: nodes and attackers share a machine, and the site is the thing measured.
PACE = Pace(step_s=4.0)
# 200 letters before each answer. Equal short answers are no evidence of copying, because two
# models that have learned a question give the same one.
WORDS = 25
# Until the pool is filled. The long run measures from then on, whatever the site has found until
# then. The short one first waits until all hostile nodes are named, and measures the effect.
SETTLE_S = 30.0 if IS_LONG else 4.0
WATCH_S = 120.0 if IS_LONG else 12.0
# The least share of the external rollouts per step, compared with the clean run.
LEAST_USED = 0.9
# The same for steps, and for steps with external rollouts. In the short run other tests may take
# the processor during one half only.
LEAST_STEPS = 0.9 if IS_LONG else 0.5
NAMED_WITHIN_S = 90.0
# Enough spot checks to detect false declarations within seconds.
SETTINGS = {"RELAY_DECLARED_CHECKS_PER_MINUTE": "600"}
# The refusals shown on the page of a hostile node.
REFUSED = {
    "garbler": ("protocol.not_json", "protocol.too_large", "relay.rollout"),
    # On a machine that is busy with other tests its messages may stay below the rate limit.
    "flooder": ("protocol.hello", "rate.limited") if IS_LONG else ("protocol.hello",),
    "stranger": ("task.foreign", "task.index", "task.dataset", "task.config"),
}
# The possible charges of each node at its latest finding; the flooder does nearly everything. What
# the copier takes from other hostile nodes may be worthless or falsely declared.
CHARGES = {
    "garbler": {Charge.REFUSED, Charge.FLOODING, Charge.UNHEEDING},
    "flooder": set(Charge) - {Charge.TOO_RIGHT},
    "copier": {Charge.COPYING, Charge.WORTHLESS, Charge.MISDECLARED},
    "executor": {Charge.MISDECLARED},
    "stranger": {Charge.REFUSED},
    "sleeper": {Charge.UNHEEDING, Charge.FLOODING},
}
# The nodes whose declarations are found to be false.
LIARS = ("executor", "flooder")
LAPSED = "ignored at present"
LOOK_EVERY_S = 1.0


@dataclass(frozen=True)
class Measurement:
    """Counters of the honest nodes over some time: external rollouts used, by kind of sender."""

    seconds: float
    steps: int
    supplied: int
    honest: int
    hostile: int
    dropped: Mapping[str, int]

    @property
    def used(self) -> float:
        """External rollouts that a node used per step with any."""
        return (self.honest + self.hostile) / self.supplied

    @property
    def used_of_honest(self) -> float:
        """The same, only those of honest nodes."""
        return self.honest / self.supplied

    @property
    def steps_per_minute(self) -> float:
        """Steps per node and minute."""
        return 60 * self.steps / self.seconds / HONEST

    def __str__(self) -> str:
        return (
            f"{self.used:.2f} rollouts of others used in a step, {self.used_of_honest:.2f} of them"
            f" of honest nodes; {self.steps_per_minute:.1f} steps a minute,"
            f" {self.steps - self.supplied} of {self.steps} without any; dropped:"
            f" {dict(self.dropped)}"
        )


@dataclass(frozen=True)
class Scene:
    """The results of the scenario, for the tests."""

    clean: Measurement
    noticing: Measurement
    attacked: Measurement
    connected: int
    pages: Mapping[str, str]
    mark: Path
    named_after: Mapping[str, float]
    charges: Mapping[str, list[str]]
    readiness: Mapping[str, object]
    metrics: str


@pytest.fixture(scope="module")
def scene(committed_rows: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("hostile")
    start_season(make_season(), now=timezone.now())
    tokens = {f"honest-{i}": create_node(name=f"honest-{i}")[1] for i in range(HONEST)}
    hostile = [create_node(name=name)[1] for name in ATTACKS]
    with ExitStack() as stack:
        url = stack.enter_context(running_site(folder, **SETTINGS))
        site = parse_site(url)
        learners = Learners(
            tokens=tokens,
            sites=lambda name: site,
            folder=folder / "nodes",
            verifier=stack.enter_context(Verifier()),
            pace=PACE,
            words=WORDS,
        )
        stack.enter_context(learners)
        eventually(lambda: learners.connected == HONEST, within_s=180, what="all are connected")
        time.sleep(SETTLE_S)
        clean = measure(learners, lambda: time.sleep(WATCH_S))
        (folder / "tokens").write_text("\n".join(hostile))
        attackers = SiteProcess(
            name="hostile",
            command=(
                *(sys.executable, "-m", "tests.swarm.hostile", site.socket),
                *(str(folder / "tokens"), str(folder / "mark")),
            ),
            folder=PROJECT,
        )
        with running(attackers, log=folder / "hostile.log") as process:
            lookout = Lookout(url)
            noticing = measure(learners, lookout.settle if IS_LONG else lookout.await_all)
            attacked = measure(learners, lambda: lookout.observe(WATCH_S))
            connected = learners.connected
            lookout.await_all()
            assert process.process.poll() is None, process.output()
        results = Scene(
            clean,
            noticing,
            attacked,
            connected,
            {name: fetch(f"{url}/nodes/{name}/") for name in (*ATTACKS, *tokens)},
            folder / "mark",
            lookout.named_after,
            lookout.charges,
            json.loads(fetch(f"{url}/readyz")),
            fetch(f"{url}/metrics"),
        )
        report(results)
        yield results


class Lookout:
    """Records after how many seconds the status page names each node, and its charges in order."""

    def __init__(self, url: str) -> None:
        self.named_after: dict[str, float] = {}
        self.charges: defaultdict[str, list[str]] = defaultdict(list)
        self._url = url
        self._began = time.monotonic()

    def observe(self, seconds: float) -> None:
        """Read the page repeatedly for some time."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, LOOK_EVERY_S))
            self._look()

    def settle(self) -> None:
        """Observe until all attacks are running."""
        self.observe(SETTLE_S)

    def await_all(self) -> None:
        """Wait until the site has found all hostile nodes, or the time is up."""
        until = time.monotonic() + NAMED_WITHIN_S
        while time.monotonic() < until and not self._has_found_all():
            self.observe(LOOK_EVERY_S)

    def _look(self) -> None:
        for name in named(fetch(f"{self._url}/status/")):
            self.named_after.setdefault(name, round(time.monotonic() - self._began, 1))
        for name, charge in Conduct.objects.exclude(charge="").values_list("node__name", "charge"):
            if self.charges[name][-1:] != [charge]:
                self.charges[name].append(charge)

    def _has_found_all(self) -> bool:
        if not set(ATTACKS) <= set(self.named_after):
            return False
        pages = {name: fetch(f"{self._url}/nodes/{name}/") for name in ATTACKS}
        refused = all(set(codes) <= refusals(pages[name]) for name, codes in REFUSED.items())
        return refused and all(LAPSED in pages[name] for name in LIARS)


def make_season() -> Season:
    """Return a season with the default rules and small training sets.

    With the default size the steps of twenty nodes would take the processor from the site.
    """
    return Season.objects.create(
        name="Hostile",
        tasks=msgspec.to_builtins(TASKS),
        cadence_seconds=0,
        completions=4,
        external=8,
        max_new_tokens=256,
    )


def measure(learners: Learners, pause: Callable[[], None]) -> Measurement:
    """Count the steps and rollouts during a pause."""
    before, began = count(learners), time.monotonic()
    pause()
    used, dropped, steps = (now - then for now, then in zip(count(learners), before, strict=True))
    hostile = sum(used[name] for name in ATTACKS)
    return Measurement(
        seconds=time.monotonic() - began,
        steps=steps["made"],
        supplied=steps["supplied"],
        honest=used.total() - hostile,
        hostile=hostile,
        dropped=dropped,
    )


def count(learners: Learners) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Return rollouts used by sender, rollouts dropped by reason, and steps."""
    used, dropped = Counter[str](), Counter[str]()
    for node in learners.nodes:
        used.update(node.view.used_of.copy())
        dropped.update(node.external_dropped)
    supplied = sum(node.view.supplied for node in learners.nodes)
    return used, dropped, Counter(made=sum(learners.steps), supplied=supplied)


def fetch(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as response:
        body: bytes = response.read()
    return body.decode()


def report(scene: Scene) -> None:
    """Log the figures."""
    log.warning("clean: %s", scene.clean)
    log.warning("attacked, at first: %s", scene.noticing)
    log.warning("attacked: %s", scene.attacked)
    log.warning(
        "of the clean run: %.1f %% used, %.1f %% of honest nodes, %.1f %% of the steps",
        100 * scene.attacked.used / scene.clean.used,
        100 * scene.attacked.used_of_honest / scene.clean.used_of_honest,
        100 * scene.attacked.steps_per_minute / scene.clean.steps_per_minute,
    )
    log.warning("named after seconds: %s", dict(scene.named_after))
    log.warning("charges: %s", dict(scene.charges))


def named(status: str) -> set[str]:
    """Return the nodes that the status page lists with a lowered hand-out weight."""
    section = status.partition('<section id="hand-outs"')[2].partition("</section>")[0]
    return set(re.findall(r'href="[^"]*/nodes/([-\w]+)/"', section))


def refusals(page: str) -> set[str]:
    """Return the codes in the table of a node's refusals."""
    section = page.partition('<section id="refusals"')[2].partition("</section>")[0]
    return set(re.findall(r'<th scope="row"><code>([a-z_.]+)</code>', section))


def test_honest_nodes_use_almost_as_many_external_rollouts_as_in_the_clean_run(
    scene: Scene,
) -> None:
    assert scene.attacked.used >= LEAST_USED * scene.clean.used


def test_hostile_rollouts_displace_few_honest_ones(scene: Scene) -> None:
    assert scene.attacked.used_of_honest >= LEAST_USED * scene.clean.used_of_honest


def test_honest_nodes_train_as_fast_as_in_the_clean_run(scene: Scene) -> None:
    assert scene.attacked.steps_per_minute >= LEAST_STEPS * scene.clean.steps_per_minute


def test_honest_nodes_receive_external_rollouts_in_time(scene: Scene) -> None:
    clean, attacked = (one.supplied / one.steps for one in (scene.clean, scene.attacked))
    assert attacked >= LEAST_STEPS * clean


def test_no_honest_node_loses_its_connection(scene: Scene) -> None:
    assert scene.connected == HONEST


@pytest.mark.parametrize("name", REFUSED)
def test_page_of_a_hostile_node_lists_its_refusals(scene: Scene, name: str) -> None:
    assert set(REFUSED[name]) <= refusals(scene.pages[name])


@pytest.mark.parametrize("name", LIARS)
def test_page_of_a_hostile_node_states_that_its_declarations_are_ignored(
    scene: Scene, name: str
) -> None:
    assert LAPSED in scene.pages[name]


def test_status_page_names_every_hostile_node(scene: Scene) -> None:
    assert set(ATTACKS) - set(scene.named_after) == set()


def test_status_page_names_no_honest_node(scene: Scene) -> None:
    assert set(scene.named_after) - set(ATTACKS) == set()


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_node_has_a_finding_that_matches_its_attack(scene: Scene, name: str) -> None:
    assert scene.charges[name][-1] in CHARGES[name]


def test_copier_is_found_copying(scene: Scene) -> None:
    assert Charge.COPYING in scene.charges["copier"]


def test_no_honest_node_has_refusals(scene: Scene) -> None:
    pages = {name: refusals(page) for name, page in scene.pages.items() if name not in ATTACKS}
    assert pages == {f"honest-{i}": set() for i in range(HONEST)}


def test_refusals_are_counted_in_the_metrics(scene: Scene) -> None:
    codes = {code for shown in REFUSED.values() for code in shown}
    counted = set(re.findall(r'swarm_refused_total\{code="([a-z_.]+)"\}', scene.metrics))
    assert codes <= counted
    assert 'swarm_connections_total{code="denied"}' in scene.metrics


def test_no_answer_is_executed(scene: Scene) -> None:
    assert not scene.mark.exists()


def test_site_is_ready(scene: Scene) -> None:
    assert scene.readiness["ready"] is True
