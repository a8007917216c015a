"""The task mix of a first season: four datasets that a tiny character-level model can learn.

Questions are short and answers have few characters. Each dataset pays for something else (adding,
multiplying, a rule applied to two numbers, copying in reverse order), and knows enough different
questions that what is learned in training shows in the judge's.
"""

from swarm_protocol.messages import TaskChoice

STARTER_SEASON_SEED = 20_250_911

STARTER_TASKS: tuple[TaskChoice, ...] = (
    TaskChoice(
        dataset="chain_sum",
        config={"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 2},
        weight=1.0,
    ),
    TaskChoice(
        dataset="products",
        config={"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 2},
        weight=1.0,
    ),
    TaskChoice(
        dataset="gcd",
        config={"min_numbers": 2, "max_numbers": 2, "max_value": 40},
        weight=1.0,
    ),
    TaskChoice(
        dataset="spell_backward",
        config={"min_word_len": 3, "max_word_len": 6},
        weight=1.0,
    ),
)
