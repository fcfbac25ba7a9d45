"""From canonical types to grammars, and values to text."""
