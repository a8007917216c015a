"""`manage.py create_node`: create a node and its token."""

import os
from pathlib import Path

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import IntegrityError, transaction

from swarm_web.nodes.models import Node
from swarm_web.nodes.services import authenticate, create_node


class Command(BaseCommand):
    """Create a node; print its token, or write it to a file that only you can read."""

    help = "Create a node and show its token once."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--name", help="1 to 64 of A-Z a-z 0-9 _ -; drawn from a word list by default"
        )
        parser.add_argument("--arm", choices=Node.Arm.values, default=Node.Arm.SWARM.value)
        parser.add_argument(
            "--owner",
            help="user name of its owner, who cannot read questions with one node for another",
        )
        parser.add_argument(
            "--token-file",
            type=Path,
            help="write the token there (mode 0600); a file with a valid token is left as it is",
        )

    def handle(
        self,
        *,
        name: str | None,
        arm: str,
        owner: str | None,
        token_file: Path | None,
        **_options: object,
    ) -> None:
        """Create a node, and print its token or write it to the token file.

        If the token file already holds a valid token, no node is created. Raises CommandError if
        the name is invalid or taken, or there is no such owner.
        """
        if token_file is not None and token_file.exists():
            existing = authenticate(token_file.read_text().strip())
            if existing is not None:
                self.stdout.write(f"{existing.name} keeps the token in {token_file}")
                return
        try:
            # Keep the node only if its token could be written.
            with transaction.atomic():
                node, token = create_node(name=name, arm=arm)
                if owner is not None:
                    node.owner = User.objects.get(username=owner)
                    node.save(update_fields=["owner"])
                if token_file is not None:
                    write_token(token_file, token)
        except ValidationError:
            raise CommandError(
                f"The name {name!r} does not fit into a web address. Use 1 to 64 of the characters "
                "A-Z a-z 0-9 _ -, such as amber-quiet-heron."
            ) from None
        except User.DoesNotExist:
            raise CommandError(
                f"There is no user {owner!r}. Add it in the admin first; it needs no permissions."
            ) from None
        except IntegrityError:
            raise CommandError(
                f"A node named {name} exists. Choose another name, or give it a new token in the "
                "admin."
            ) from None
        result = token if token_file is None else f"token written to {token_file}"
        self.stdout.write(f"{node.name} {result}")


def write_token(path: Path, token: str) -> None:
    """Write a token to a file that only this user can read; create its folder if missing.

    Raises OSError if that fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        os.fchmod(file.fileno(), 0o600)  # an existing file keeps its mode when it is opened
        file.write(token + "\n")
