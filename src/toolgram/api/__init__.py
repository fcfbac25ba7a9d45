"""The wire JSON of the APIs that clients speak, to requests and from events; pure."""
