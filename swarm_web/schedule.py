"""What Celery's beat starts, and how often (seconds)."""

BEAT_SCHEDULE = {
    # A tick that waited longer than its period is worth nothing: the next one does its work.
    "tick-rounds": {"task": "judge.tasks.tick_rounds", "schedule": 1.0, "options": {"expires": 2}},
    # The gateway asks for grading as answers come in; this finds what was lost on the way.
    "grade-answers": {
        "task": "judge.tasks.grade_answers",
        "schedule": 2.0,
        "options": {"expires": 4},
    },
    # Apart from the tick, because it waits for servers of others.
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
    "keep-declarations": {
        "task": "swarm_web.relay.tasks.keep_declarations",
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
    # The watch over silent nodes takes a minute without a look for an outage (notifications.rules).
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
