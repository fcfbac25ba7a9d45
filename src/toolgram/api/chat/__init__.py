"""Chat completions: the request's body, the answer's."""
