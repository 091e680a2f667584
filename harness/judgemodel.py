"""A model of a provider as a judge: which one a name means, and one answer of it.

Refuses to know what is asked, and how providers are spoken to.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from harness.judges import JudgeError, JudgeFileError
from harness.modelagent import ModelChoice, Provider
from harness.models.model import ModelError, Request, Told
from harness.models.provided import missing_for, provided_model
from harness.opinion import Question
from proxy.problem import Problem
from proxy.webaddress import UrlError, read_url

DEFAULT = "gemini-2.5-flash"
"""The judge of agent-mark, which `default` names."""
URL = "WIRETRAP_JUDGE_URL"
"""The variable with another address for the provider's, such as that of a model of one's own."""
PROVIDERS: Mapping[str, Provider] = {"gemini": "gemini", "anthropic": "anthropic", "openai": "openai"}


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """One model, asked at temperature 0. Its key is taken from the environment each time, and kept nowhere."""

    choice: ModelChoice
    environment: Mapping[str, str]

    @property
    def name(self) -> str:
        """As the provider calls it."""
        return self.choice.name

    async def ask(self, system: str, prompt: str, question: Question, attempt: int) -> str:
        """The text of its answer. Raises JudgeError."""
        try:
            model = provided_model(self.choice, self.environment)
            try:
                reply = await model.ask(Request("judge", system, (Told(prompt),), (), "", 0))
            finally:
                await model.close()
        except ModelError as error:
            # What a provider says of an error may hold a part of the key.
            raise JudgeError(
                "the judge could not be asked" + ("" if error.status is None else f": HTTP status {error.status}")
            ) from None
        return reply.text


def model_judge(spec: str, environment: Mapping[str, str] = os.environ) -> ModelJudge:
    """The judge of `NAME` or `PROVIDER:NAME`; `default` is DEFAULT. Raises JudgeFileError where it cannot be asked."""
    before, colon, name = spec.partition(":")
    provider = PROVIDERS.get(before) if colon else None
    if provider is None:
        name = DEFAULT if spec == "default" else spec
        provider = "gemini" if name.startswith("gemini") else "anthropic" if name.startswith("claude") else "openai"
    url = environment.get(URL) or None
    choice = ModelChoice(provider, name, base_url=url, temperature=0)
    wrong = "" if name else f"{spec!r} names no model"
    if url is not None:
        try:
            read_url(url)
        except UrlError as error:
            wrong = f"{URL}: {error}"
    wrong = wrong or missing_for(choice, environment)
    if wrong:
        raise JudgeFileError([Problem("--judge", None, "", wrong)])
    return ModelJudge(choice, environment)
