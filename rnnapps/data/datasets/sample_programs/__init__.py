"""Generated beginners' programs in Python: the bundled sample for models of characters."""
