"""The nouns (reading, question, law, instrument, subject) and what guards them (checks, state)."""
