"""What goes in and what comes out: requests, messages, events."""
