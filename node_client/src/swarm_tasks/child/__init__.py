"""The verifier's child process. In this package, only `child` and `gate` import reasoning-gym.

`__main__` answers requests, and `generators` makes tasks and scores answers; `own` has the datasets
with a verifier of this project. `sandbox` takes away the process's rights by means of `landlock`
and `seccomp`.
"""
