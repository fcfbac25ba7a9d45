"""What the commands do that put question after question: to a person, to a server, to a recording."""
