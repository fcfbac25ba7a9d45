"""OpenAI's responses: the request's body, the answer's."""
