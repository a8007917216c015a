"""Datasets whose verifier of the library may not be used, with one of our own in its place.

A class here makes the library's entries and reads answers without executing them
(`docs/decisions/0023-own-verifiers.md`). The gate measures it like any other.
"""

from swarm_tasks.child.own.binary_matrix import BinaryMatrix
from swarm_tasks.child.own.propositional_logic import PropositionalLogic

OWN_DATASETS = {
    "binary_matrix": BinaryMatrix,
    "propositional_logic": PropositionalLogic,
}
