"""Datasets whose verifier in the library cannot be used, each with a verifier of this project.

Each class makes the library's entries, and scores answers without executing them
(`docs/decisions/0023-own-verifiers.md`). The gate measures them like any other dataset.
"""

from swarm_tasks.child.own.binary_matrix import BinaryMatrix
from swarm_tasks.child.own.propositional_logic import PropositionalLogic

OWN_DATASETS = {
    "binary_matrix": BinaryMatrix,
    "propositional_logic": PropositionalLogic,
}
