"""Addresses of the pages, downloads, health checks and the package index."""

from django.urls import path, re_path

from swarm_web.dashboard.downloads import lab as lab_downloads
from swarm_web.dashboard.downloads import record
from swarm_web.dashboard.downloads import views as downloads
from swarm_web.dashboard.operations import health, package_index
from swarm_web.dashboard.pages import (
    compare,
    home,
    lab,
    leaderboard,
    nodes,
    rollouts,
    rounds,
    tasks,
    texts,
)
from swarm_web.dashboard.sharing import views as sharing
from swarm_web.dashboard.sharing.feeds import ClosedRounds

urlpatterns = [
    path("", home.home, name="home"),
    path("favicon.ico", sharing.favicon, name="favicon"),
    path("robots.txt", texts.robots, name="robots"),
    re_path(r"^badge\.(?P<suffix>json|svg)$", sharing.site_badge, name="badge"),
    path("card.png", sharing.site_card, name="card"),
    # ---- leaderboard
    path("leaderboard/", leaderboard.leaderboard, name="leaderboard"),
    path("leaderboard/figure.json", leaderboard.leaderboard_figure, name="leaderboard-figure"),
    # ---- nodes
    path("nodes/<slug:name>/", nodes.node, name="node"),
    path("nodes/<slug:name>/figure.json", nodes.node_figure, name="node-figure"),
    re_path(
        r"^nodes/(?P<name>[-\w]+)/badge\.(?P<suffix>json|svg)$",
        sharing.node_badge,
        name="node-badge",
    ),
    path("nodes/<slug:name>/card.png", sharing.node_card, name="node-card"),
    # ---- rounds
    path("rounds/", rounds.rounds, name="rounds"),
    path("rounds/figure.json", rounds.rounds_figure, name="rounds-figure"),
    path("rounds/feed.atom", ClosedRounds(), name="rounds-feed"),
    path("rounds/chain.jsonl", record.download_chain, name="chain"),
    path("rounds/<int:number>/", rounds.judge_round, name="round"),
    path("rounds/<int:number>/replay.json", rounds.round_replay, name="round-replay"),
    path("rounds/<int:number>/questions/<int:position>/", rounds.question, name="question"),
    re_path(
        r"^rounds/(?P<number>\d{1,9})/rewards\.(?P<suffix>csv|jsonl|parquet)$",
        downloads.download_round_rewards,
        name="round-rewards",
    ),
    path(
        "rounds/<int:number>/answers.jsonl", downloads.download_round_answers, name="round-answers"
    ),
    path("rounds/<int:number>/results.jsonl", record.download_results, name="round-results"),
    path("rounds/<int:number>/asked.jsonl", downloads.download_round_asked, name="round-asked"),
    # ---- the swarm
    path("rollouts/", rollouts.rollouts, name="rollouts"),
    path("rollouts/flow/", rollouts.flow, name="flow"),
    path("rollouts/<int:pk>/", rollouts.rollout, name="rollout"),
    path("compare/", compare.compare, name="compare"),
    path("compare/figure.json", compare.compare_figure, name="compare-figure"),
    path("tasks/", tasks.tasks, name="tasks"),
    path("tasks/<slug:dataset>/", tasks.task, name="task"),
    path("tasks/<slug:dataset>/figure.json", tasks.task_figure, name="task-figure"),
    # ---- the lab
    path("lab/", lab.lab, name="lab"),
    path("lab/<str:name>/", lab.lab_report, name="lab-report"),
    path("lab/<str:name>/figure.json", lab.lab_figure, name="lab-figure"),
    re_path(
        r"^lab/(?P<name>[^/]+)/(?P<file>report\.json|experiment\.toml)$",
        lab_downloads.download_lab_file,
        name="lab-file",
    ),
    path("lab/<str:name>/runs.tar.gz", lab_downloads.download_lab_runs, name="lab-runs"),
    # ---- data to take away
    path("downloads/", texts.downloads, name="downloads"),
    re_path(
        r"^downloads/rewards\.(?P<suffix>csv|jsonl|parquet)$",
        downloads.download_rewards,
        name="rewards",
    ),
    path("downloads/rollouts.jsonl", downloads.download_rollouts, name="rollouts-archive"),
    # ---- joining and watching over the site
    path("join/", texts.join, name="join"),
    path("status/", health.status, name="status"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("simple/", package_index.list_projects, name="simple"),
    path("simple/constraints.txt", package_index.serve_constraints, name="simple-constraints"),
    # Before the projects: no project "cpu" can come from here, and none is needed.
    path("simple/cpu/", package_index.list_projects, {"build": "cpu"}, name="simple-cpu"),
    path("simple/<str:project>/", package_index.list_wheels, name="simple-project"),
    path(
        "simple/cpu/<str:project>/",
        package_index.list_wheels,
        {"build": "cpu"},
        name="simple-cpu-project",
    ),
    path(
        "simple/<str:project>/<str:filename>.metadata",
        package_index.serve_metadata,
        name="simple-metadata",
    ),
    path("simple/<str:project>/<str:filename>", package_index.serve_wheel, name="simple-wheel"),
]
