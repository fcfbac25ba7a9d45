"""A tool call from any loop that has logits: here a random one, in numpy; needs transformers and llguidance.

With transformers' own loop it is `model.generate(…, logits_processor=[masks.processor(constraint, plan.stop)])`.
"""

import json
import sys

import numpy as np
from transformers import AutoTokenizer, PreTrainedTokenizerBase

import toolgram
from toolgram.engines.external.masks import TokenMasks

QUESTION = {
    "messages": [{"role": "user", "content": "Will it rain in Paris?"}],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "parameters": {
                    "type": "object",
                    "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "maximum": 9}},
                    "required": ["city"],
                },
            },
        }
    ],
    "tool_choice": "required",
    "parallel_tool_calls": False,
}


def random_call(tokenizer: PreTrainedTokenizerBase, template: toolgram.ChatTemplate) -> str:
    """What a model with random logits writes under the constraint."""
    plan = toolgram.plan(QUESTION, template)
    if plan.constraint is None:
        raise ValueError("there is nothing to constrain: the request has neither tools nor a schema")
    masks = TokenMasks(tokenizer)
    steps = masks.follow(plan.constraint.bind(masks.vocabulary), plan.stop)
    random = np.random.default_rng(0)
    mask, written = next(steps), list[int]()
    while True:
        logits = random.normal(size=len(mask))
        written.append(int(np.argmax(np.where(mask, logits, -np.inf))))
        try:
            mask = steps.send(written[-1])
        except StopIteration:  # the last token ended the text
            return json.dumps(plan.parse(masks.decode(written, plan.stop)).to_openai())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("give the folder of a model of Hugging Face, with its tokenizer and chat template")
    folder = sys.argv[1]
    print(random_call(AutoTokenizer.from_pretrained(folder), toolgram.ChatTemplate.from_hf(folder)))
