"""`manage.py publish_head`: append the chain's signed head to a file, for publication."""

import subprocess
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from judge.services.record import read_chain_head

FILE = "heads.jsonl"


class Command(BaseCommand):
    """Append the signed head to heads.jsonl in a folder, and with `--git` commit the file."""

    help = "Append the chain's head to heads.jsonl in a folder, for publication elsewhere."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("folder", type=Path)
        parser.add_argument("--git", action="store_true", help="commit the file in the folder")

    def handle(self, *, folder: Path, git: bool, **_options: Any) -> None:
        """Append a line with the chain's head to a file in `folder`; commit it if `git` is true."""
        now = timezone.now()
        head = read_chain_head(now=now)
        line = {"site": settings.SITE_URL, "at": now.isoformat(), **msgspec.to_builtins(head)}
        try:
            with (folder / FILE).open("ab") as file:
                file.write(msgspec.json.encode(line) + b"\n")
        except OSError as problem:
            raise CommandError(f"{folder / FILE} cannot be written: {problem}") from None
        if git:
            _commit(folder, f"Link {head.sequence}: {head.head}")
        self.stdout.write(f"link {head.sequence} {head.head}")


def _commit(folder: Path, message: str) -> None:
    for arguments in (["add", FILE], ["commit", "--quiet", "--message", message, "--", FILE]):
        try:
            subprocess.run(
                ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
            )
        except FileNotFoundError:
            raise CommandError("git is not installed.") from None
        except subprocess.CalledProcessError as failed:
            raise CommandError(f"git {arguments[0]}: {failed.stderr.strip()}") from None
