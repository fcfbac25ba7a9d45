"""Regular languages: automata, regular expressions, and their way to grammars."""
