"""The tasks that Celery's beat starts, and their periods in seconds."""

BEAT_SCHEDULE = {
    # A task that waited longer than `expires` is dropped, because the next one does its work.
    "tick-rounds": {"task": "judge.tasks.tick_rounds", "schedule": 1.0, "options": {"expires": 2}},
    # The gateway queues grading when answers come in; this task finds those whose grading was lost.
    "grade-answers": {
        "task": "judge.tasks.grade_answers",
        "schedule": 2.0,
        "options": {"expires": 4},
    },
    # Separate from the tick, because it waits for the beacon's servers.
    "draw-rounds": {
        "task": "judge.tasks.draw_rounds",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
    "update-standings": {
        "task": "judge.tasks.update_standings",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
    "keep-archive": {
        "task": "swarm_web.relay.tasks.keep_archive",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
    "check-conduct": {
        "task": "swarm_web.relay.tasks.check_conduct",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
    "sample-pace": {
        "task": "swarm_web.dashboard.tasks.sample_pace",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
    "prune-sessions": {"task": "swarm_web.accounts.tasks.prune_sessions", "schedule": 3600.0},
    "prune-requests": {"task": "swarm_web.joining.tasks.prune", "schedule": 3600.0},
    "prune-archive": {"task": "swarm_web.relay.tasks.prune", "schedule": 3600.0},
    # More often than once a minute: after a longer gap the watch over nodes starts again
    # (notifications.rules).
    "notice-news": {
        "task": "swarm_web.notifications.tasks.notice",
        "schedule": 15.0,
        "options": {"expires": 30},
    },
    "deliver-news": {
        "task": "swarm_web.notifications.tasks.deliver",
        "schedule": 2.0,
        "options": {"expires": 4},
    },
    "prune-news": {"task": "swarm_web.notifications.tasks.prune", "schedule": 3600.0},
}
