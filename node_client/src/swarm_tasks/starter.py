"""Ready-made task mixes: for tiny models, for a demo, and for a season that lasts a year.

A tiny character-level model can learn the four datasets of `STARTER_TASKS`: questions are short and
answers have few characters. Each dataset needs a different skill (adding, multiplying, applying a
rule to two numbers, copying in reverse order). Each has enough different questions for a model
that improves in training to improve on the judge's questions too. Nodes without a season train on
`STARTER_TASKS`. All base models of demos, except `thinker`, are warmed up on them.

No season asks a question twice, so a mix lasts for a limited number of rounds
(`swarm_tasks.spaces`).
"""

from msgspec.structs import replace

from swarm_protocol.messages import ConfigValue, TaskChoice

STARTER_SEASON_SEED = 20_250_911


def _task(dataset: str, **config: ConfigValue) -> TaskChoice:
    return TaskChoice(dataset=dataset, config=config, weight=1.0)


STARTER_TASKS: tuple[TaskChoice, ...] = (
    _task("chain_sum", min_terms=2, max_terms=2, min_digits=1, max_digits=2),
    _task("products", min_terms=2, max_terms=2, min_digits=1, max_digits=2),
    _task("gcd", min_numbers=2, max_numbers=2, max_value=40),
    _task("spell_backward", min_word_len=3, max_word_len=6),
)

# The starter tasks for a demo, with larger numbers for gcd: with numbers up to 40, the demo's judge
# would have no questions of gcd left after a few minutes.
DEMO_TASKS: tuple[TaskChoice, ...] = tuple(
    replace(task, config={**task.config, "max_value": 100}) if task.dataset == "gcd" else task
    for task in STARTER_TASKS
)

# The default mix of a new season: enough for a year of rounds of 16 questions, one every five
# minutes. All questions of a dataset are about equally hard, so the mix does not get harder when
# some questions have been asked.
YEAR_TASKS: tuple[TaskChoice, ...] = (
    _task("chain_sum", min_terms=3, max_terms=3, min_digits=2, max_digits=2),
    _task("gcd", min_numbers=2, max_numbers=2, max_value=3000),
    _task("fraction_simplification"),
    _task("word_sequence_reversal"),
)
