"""Addresses of the pages, downloads, health checks and the package index."""

from django.urls import path, re_path

from swarm_web.dashboard import downloads, health, package_index, pages

urlpatterns = [
    path("", pages.home, name="home"),
    path("leaderboard/", pages.leaderboard, name="leaderboard"),
    path("leaderboard/figure.json", pages.leaderboard_figure, name="leaderboard-figure"),
    path("nodes/<slug:name>/", pages.node, name="node"),
    path("nodes/<slug:name>/figure.json", pages.node_figure, name="node-figure"),
    path("rounds/", pages.rounds, name="rounds"),
    path("rounds/<int:number>/", pages.judge_round, name="round"),
    re_path(
        r"^rounds/(?P<number>\d{1,9})/rewards\.(?P<suffix>csv|jsonl)$",
        downloads.download_round_rewards,
        name="round-rewards",
    ),
    re_path(
        r"^rounds/(?P<number>\d{1,9})/answers\.jsonl$",
        downloads.download_round_answers,
        name="round-answers",
    ),
    path("compare/", pages.compare, name="compare"),
    path("downloads/", pages.downloads, name="downloads"),
    re_path(
        r"^downloads/rewards\.(?P<suffix>csv|jsonl)$", downloads.download_rewards, name="rewards"
    ),
    path("join/", pages.join, name="join"),
    path("status/", health.status, name="status"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("simple/", package_index.list_projects, name="simple"),
    path("simple/<str:project>/", package_index.list_wheels, name="simple-project"),
    path("simple/<str:project>/<str:filename>", package_index.serve_wheel, name="simple-wheel"),
]
