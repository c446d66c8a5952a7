"""Generated English sentences and their Italian translations: the translation task's sample."""
