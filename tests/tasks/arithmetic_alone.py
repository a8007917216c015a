"""Import this before reasoning-gym to load only its arithmetic datasets, in a fifth of the time.

For children that tests start only to lose them: most of their start-up is the import of sympy.
"""

import sys
import types
from importlib.util import find_spec
from pathlib import Path

_gym = find_spec("reasoning_gym")
assert _gym is not None
assert _gym.origin is not None
for _folder in Path(_gym.origin).parent.iterdir():
    if (_folder / "__init__.py").exists() and _folder.name not in ("arithmetic", "coaching"):
        _name = f"reasoning_gym.{_folder.name}"
        sys.modules.setdefault(_name, types.ModuleType(_name))

# The project's own verifiers belong to datasets that are not loaded here.
_own = types.ModuleType("swarm_tasks.child.own")
_own.__dict__["OWN_DATASETS"] = {}
sys.modules.setdefault(_own.__name__, _own)
