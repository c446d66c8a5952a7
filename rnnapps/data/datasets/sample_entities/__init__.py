"""Generated sentences with named entities: the named entity task's bundled sample."""
