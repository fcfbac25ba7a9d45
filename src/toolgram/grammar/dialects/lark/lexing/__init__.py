"""What llguidance's lexer does with the lexemes of a grammar, and where it would cut a text in the wrong place."""
