"""An engine that repeats recorded turns, of a model that sees."""

from __future__ import annotations

from toolgram.conversation.media import media_in
from toolgram.engines.replay import Replay


class Seeing(Replay):
    """As `Replay`, shown images."""

    is_one_of_several = False

    async def sees(self) -> bool:
        return True

    def shown(self) -> list[list[str]]:
        """The images of each prompt, in base64."""
        return [[each.data for each in media_in(call.prompt)] for call in self.calls]
