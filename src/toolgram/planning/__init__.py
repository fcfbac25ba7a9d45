"""From a request and a template to a plan: prompt, grammar, reader."""
