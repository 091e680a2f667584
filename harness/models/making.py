"""Makes the model that an agent file asks for.

Refuses to know providers: their library is loaded only for a model of theirs.
"""

import os

from harness.modelagent import ModelChoice
from harness.models.model import Model
from harness.models.scripted import ScriptedModel


def make_model(choice: ModelChoice) -> Model:
    """The model; a provider's is not asked anything yet. Raises ModelError where it cannot be asked at all."""
    if choice.script is not None:
        return ScriptedModel(choice.name, choice.script, choice.seed)
    # An extra, and more than a second to import.
    from harness.models.provided import provided_model  # noqa: PLC0415  (it loads the library of a provider)

    return provided_model(choice, os.environ)
