"""What is best for a model, found by asking it questions with known answers."""
