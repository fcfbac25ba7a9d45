"""How many answers of a model are right: questions with known calls, asked through any engine."""
