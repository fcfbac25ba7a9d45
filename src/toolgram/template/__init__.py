"""Chat templates: rendering, what they can express, fitting conversations to them, and telling whose text is whose."""
