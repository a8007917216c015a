"""Which names new accounts may have: they stand in addresses and in lists beside others."""

from django.core.validators import MaxLengthValidator, validate_slug

LONGEST = 40
# Letters and digits of ASCII, hyphens and underscores: nothing that hides, turns the text around
# it, or looks like a letter of another script.
VALIDATORS = [validate_slug, MaxLengthValidator(LONGEST)]
