"""Chat templates: rendering, what they can express, conversations made to fit them, whose text is whose."""
