"""Commands with many options, a file each: what they are given, and nothing that is slow to import."""
