"""A substitute for `docker`: run `docker compose` commands against a database server of the tests.

`exec postgres` runs Postgres's own programs against that server, `run migrate` the command of the
compose file; other commands are only logged. PROGRAMS is the programs' folder, NOTES the log file.
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
