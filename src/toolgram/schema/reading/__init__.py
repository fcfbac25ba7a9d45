"""From JSON Schema documents to canonical types."""
