"""The profile that a command uses: the one that is given, else the one that ships with toolgram for the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from toolgram.cli.inputs import BadInput
from toolgram.errors import ProfileError, nearest, unreadable
from toolgram.models.profiles import by_name, shipped
from toolgram.planning.profile import Profile
from toolgram.template.chat_template import ChatTemplate

_NONE = "none"
Bound = tuple[str | None, ChatTemplate]
"""What a profile is bound to: a model's name, None where it has none, and its chat template."""


def profile_of(given: str | None, model: Bound, style: object = None) -> Profile | None:
    """The profile of a model; none where a style is named. Raises as `profiles_of` does."""
    return profiles_of([] if given is None else [given], [model], style)[0]


def profiles_of(given: Sequence[str], models: Sequence[Bound], style: object = None) -> tuple[Profile | None, ...]:
    """The profile of each model, which is told on stderr; none where a style is named. A shipped one goes by its name.

    Raises BadInput for one that cannot be read or is given beside a style, ProfileError for one of no such model.
    """
    if style is not None and any(name != _NONE for name in given):
        raise BadInput("give --profile or --style, not both: a profile says the style")
    if style is not None or _NONE in given:
        return (None,) * len(models)
    read = [_read(name) for name in given]
    found = tuple(_found(read, *model) for model in models)
    for profile in read:
        if profile not in found:
            profile.check(models[0][1], models[0][0])
    for profile in filter(None, found):
        typer.echo(f"{profile.model}: {profile}", err=True)
    return found


def _found(read: Sequence[Profile], model: str | None, template: ChatTemplate) -> Profile | None:
    for profile in read:
        if model in (None, profile.model):
            profile.check(template)
            return profile
    return None if model is None else shipped(model, template)


def _read(name: str) -> Profile:
    if (found := by_name().get(name)) is not None:
        return found
    try:
        return Profile.read(Path(name).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise BadInput(f"{name} is neither a file nor a profile that ships; {nearest(name, by_name())}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{name}: {unreadable(error)}") from error
    except ProfileError as error:
        raise BadInput(f"{name}: {error}") from error
