"""Stands in for `docker` where there is none: `docker compose …` on a database server of the tests.

`exec postgres` runs Postgres's own programs against that server, `run migrate` what the compose
file says; anything else is only noted. PROGRAMS names the folder of the programs, NOTES the file.
"""

import os
import sys
from pathlib import Path

from tests.deploy.compose import ROOT, SERVICES


def main(words: list[str]) -> None:
    command = [word for word in words if word not in ("-T", "--rm")]
    with Path(os.environ["NOTES"]).open("a") as notes:
        notes.write(" ".join(command) + "\n")
    match command:
        case ["compose", "exec", "postgres", program, *arguments]:
            path = Path(os.environ["PROGRAMS"]) / program
            os.execv(path, [program, *arguments])
        case ["compose", "run", "migrate"]:
            _, *arguments = SERVICES["migrate"]["command"]
            os.chdir(ROOT)
            os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
